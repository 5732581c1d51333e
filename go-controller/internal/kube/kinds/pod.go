package kinds

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/northbound-net/northbound/go-controller/internal/annotation"
	"github.com/northbound-net/northbound/go-controller/internal/cluster"
	"github.com/northbound-net/northbound/go-controller/internal/kube/attachment"
)

// Reasons of Problems with pods.
const (
	reasonPodPhase = "InvalidPodPhase"
	reasonMacvlan  = "MacvlanRefused"
)

func decodePod(p *corev1.Pod) (*cluster.Pod, []cluster.Problem) {
	out := &cluster.Pod{
		Name: NameOf(p), UID: string(p.UID), Node: p.Spec.NodeName, Created: p.CreationTimestamp.Unix(),
		HostNetwork: p.Spec.HostNetwork,
		Finished:    p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
		Arrived:     p.Annotations[annotation.MachineArrived] != "",
		Labels:      cluster.NewLabels(p.Labels),
		Ports:       namedPorts(p),
	}
	f := findingsOf(cluster.KindPod, p)
	known(&f, reasonPodPhase, "status.phase", p.Status.Phase, "the pod counts as one that has not finished",
		corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown)
	out.Bandwidth = decodeBandwidth(&f, p.Annotations)
	out.Opens = decodeOpenPorts(&f, p.Annotations)
	if value := p.Annotations[annotation.NetworkRequests]; value != "" {
		decodeRequests(&f, out, value)
	}
	_, out.StatusOK = p.Annotations[annotation.NetworkStatus] // a pod of a primary network has it without any request
	value, claim := p.Annotations[annotation.DefaultNetwork], p.Annotations[annotation.PrimaryClaim]
	if value != "" || claim != "" {
		out.Preferred = attachment.Preferred(value, claim)
	}
	if why := RefusesMacvlan(p); why != "" {
		f.bad(reasonMacvlan, "annotation %s: %s: a pod that has not started does not start", annotation.PodMacvlan, why)
	}
	out.Annotated = annotation.Kept(p.Annotations[annotation.PodNetworks])
	out.Found = cluster.NewFound(p.Annotations, annotation.PodNetworks, annotation.PodClassic)
	if n, err := annotation.ParsePodNetworks(out.Annotated); err == nil {
		out.ClassicOK = p.Annotations[annotation.PodClassic] == annotation.MarshalPodClassic(n)
		if out.ClassicOK {
			out.Found.Values = nil
		}
	}
	return out, f.problems
}

// namedPorts is the ports of a pod that have a name: those of its containers, and then those of its sidecars. Of two
// with one name and protocol the first counts, as for the targetPort of a Service.
func namedPorts(p *corev1.Pod) cluster.NamedPorts {
	var out map[cluster.PortName]uint16
	take := func(c *corev1.Container) {
		for _, port := range c.Ports {
			proto, ok := protocol(port.Protocol)
			name := cluster.PortName{Protocol: proto, Name: port.Name}
			if _, is := out[name]; is || !ok || port.Name == "" || portNumber(port.ContainerPort) == 0 {
				continue
			}
			if out == nil {
				out = map[cluster.PortName]uint16{}
			}
			out[name] = portNumber(port.ContainerPort)
		}
	}
	for i := range p.Spec.Containers {
		take(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; deref(c.RestartPolicy) == corev1.ContainerRestartPolicyAlways {
			take(c)
		}
	}
	return cluster.NewNamedPorts(out)
}
