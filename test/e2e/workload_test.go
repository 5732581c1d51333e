package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// image has the echo server as its entry point, and busybox beside it.
const image = "localhost/echo:1"

// deployment is n echo servers, spread over the nodes.
func deployment(app string, n int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: %[1]s}}}
      containers:
      - name: echo
        image: %[3]s
        imagePullPolicy: IfNotPresent
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
`, app, n, image)
}

// service is a dual-stack service on port 80 of every protocol.
func service(name, app string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s}
spec:
  ipFamilyPolicy: RequireDualStack
  selector: {app: %s}
  ports:
  - {name: http, port: 80, targetPort: 8080, protocol: TCP}
  - {name: echo, port: 80, targetPort: 8080, protocol: UDP}
  - {name: sctp, port: 80, targetPort: 8080, protocol: SCTP}
---
`, name, app)
}

// clusterIPs is the virtual addresses of a service, one per family.
func clusterIPs(t *testing.T, svc string) []string {
	t.Helper()
	ips := strings.Fields(kubectl(t, "get", "service", svc, "-o", "jsonpath={.spec.clusterIPs[*]}"))
	if len(ips) != 2 {
		t.Fatalf("service %s has cluster IPs %v, want two", svc, ips)
	}
	return ips
}

// hostPort is "address:port" with brackets where IPv6 needs them.
func hostPort(ip string, port int) string {
	if strings.Contains(ip, ":") {
		return fmt.Sprintf("[%s]:%d", ip, port)
	}
	return fmt.Sprintf("%s:%d", ip, port)
}
