package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// image has the echo server as its entry point, and busybox.
const image = "localhost/echo:1"

// deployment returns n echo servers, spread over the nodes.
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
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule,
         labelSelector: {matchLabels: {app: %[1]s}}}
      containers:
      - name: echo
        image: %[3]s
        imagePullPolicy: IfNotPresent
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
`, app, n, image)
}

// service returns a dual-stack service on port 80 for every protocol.
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

// clusterIPs returns the virtual addresses of a service, one in each family.
func clusterIPs(t *testing.T, svc string) []string {
	t.Helper()
	ips := strings.Fields(kubectl(t, "get", "service", svc, "-o", "jsonpath={.spec.clusterIPs[*]}"))
	if len(ips) != 2 {
		t.Fatalf("service %s has cluster IPs %v, want two", svc, ips)
	}
	return ips
}

// hostPort returns "address:port", with brackets for IPv6.
func hostPort(ip string, port int) string {
	if strings.Contains(ip, ":") {
		return fmt.Sprintf("[%s]:%d", ip, port)
	}
	return fmt.Sprintf("%s:%d", ip, port)
}
