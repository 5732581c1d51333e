package conformance

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/northbound-net/northbound/test/sandbox/progress"
)

// besideManifest is two namespaces with primary networks of the same ranges.
//
//go:embed beside.yaml
var besideManifest string

// besideNamespaces are the namespaces in besideManifest.
func besideNamespaces() []string { return []string{"red", "green"} }

// besidePods is the servers of a namespace, on different nodes, and their Service.
const besidePods = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-1, namespace: %[1]s, labels: {app: web}}
spec:
  nodeName: %[2]s
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: Never}]
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-2, namespace: %[1]s, labels: {app: web}}
spec:
  nodeName: %[3]s
  containers: [{name: echo, image: "localhost/echo:1", imagePullPolicy: Never}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s}
spec:
  type: NodePort
  selector: {app: web}
  ipFamilyPolicy: RequireDualStack
  ports:
    - {name: tcp, port: 80, targetPort: 8080, protocol: TCP}
    - {name: udp, port: 80, targetPort: 8080, protocol: UDP}
`

// besideClient is a pod that asks the same questions again and again, and logs the answers.
const besideClient = `
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: %s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers:
  - name: client
    image: localhost/echo:1
    imagePullPolicy: Never
    command: [sh, -c, 'while :; do echo "$QUESTIONS" | /bin/echo-server questions %s; sleep 1; done']
    env: [{name: QUESTIONS, value: %q}]
`

// answerLimit is how long an answer may take: the machine is busy with specs.
const answerLimit = "20s"

// question is a question, and how the answer begins: with the name of a pod, or of the host outside.
type question struct{ text, answer string }

func texts(all []question) string {
	var lines []string
	for _, q := range all {
		lines = append(lines, q.text)
	}
	return strings.Join(lines, "\n")
}

// Traffic counts connections from and to namespaces with primary networks.
type Traffic struct {
	Specs       int `json:"specs"`       // that ran meanwhile
	Connections int `json:"connections"` // all
	Wrong       int `json:"wrong"`       // without an answer, or with one of somebody else
}

// beside is the namespaces with primary networks that are there while specs run.
type beside struct {
	*bed
	outside []question            // that the host outside asks
	inside  map[string][]question // that a pod of each namespace asks
	before  map[string]int        // how many answers these had got when the specs began
	total   Traffic
	wrong   []string // some of the wrong answers
}

// prepareBeside makes the namespaces, and waits until all connections are answered.
func (b *bed) prepareBeside(ctx context.Context, log *progress.Log, manifests string) (*beside, error) {
	s := &beside{bed: b, inside: map[string][]question{}, before: map[string]int{}}
	step := log.Begin("two namespaces with primary networks")
	return s, step.End(s.start(ctx, manifests))
}

func (s *beside) start(ctx context.Context, manifests string) error {
	if err := s.installKinds(ctx, manifests); err != nil {
		return err
	}
	if err := s.kubectlDo(ctx, besideManifest, "apply", "--filename=-"); err != nil {
		return fmt.Errorf("making namespaces with primary networks: %w", err)
	}
	client, err := s.Control.Client()
	if err != nil {
		return err
	}
	for _, ns := range besideNamespaces() {
		if err := s.startIn(ctx, client, ns); err != nil {
			return fmt.Errorf("starting servers and clients in namespace %s: %w", ns, err)
		}
	}
	return poll(ctx, func() error { return s.settled(ctx) })
}

// settled is nil once all questions have right answers. What was asked before does not count.
func (s *beside) settled(ctx context.Context) error {
	var t beside
	err := s.askOutside(ctx, &t)
	for _, ns := range besideNamespaces() {
		lines, failed := s.logged(ctx, ns)
		rounds, size := len(lines)/len(s.inside[ns]), len(s.inside[ns])
		if failed == nil && rounds == 0 {
			failed = fmt.Errorf("namespace %s has got no answers yet", ns)
		}
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		t.count(ns, s.inside[ns], lines[(rounds-1)*size:rounds*size])
		s.before[ns] = rounds * size
	}
	if t.total.Wrong > 0 {
		return fmt.Errorf("asking Services of primary networks: wrong answers: %s", strings.Join(t.wrong, "; "))
	}
	return nil
}

// startIn starts servers and a client in a namespace.
func (s *beside) startIn(ctx context.Context, client kubernetes.Interface, ns string) error {
	last := s.Nodes[len(s.Nodes)-1].Spec.Name
	servers := fmt.Sprintf(besidePods, ns, s.Nodes[0].Spec.Name, s.Nodes[1].Spec.Name)
	if err := s.kubectlDo(ctx, servers, "apply", "--filename=-"); err != nil {
		return err
	}
	err := s.kubectlDo(ctx, "", "wait", "--namespace="+ns, "--for=condition=Ready", "--timeout=2m", "pod", "--all")
	if err != nil {
		return err
	}
	service, err := client.CoreV1().Services(ns).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := s.plan(ns, service); err != nil {
		return err
	}
	return s.kubectlDo(ctx, fmt.Sprintf(besideClient, ns, last, answerLimit, texts(s.inside[ns])), "apply",
		"--filename=-")
}

// plan notes what is asked: the Service by its ClusterIPs in the network, and by its node ports from outside; and the
// host outside.
func (s *beside) plan(ns string, service *corev1.Service) error {
	for _, p := range service.Spec.Ports {
		protocol := strings.ToLower(string(p.Protocol))
		ask := func(to netip.Addr, port int32, answer string) question {
			return question{protocol + " " + netip.AddrPortFrom(to, uint16(port)).String(), answer}
		}
		for _, text := range service.Spec.ClusterIPs {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				return fmt.Errorf("reading the ClusterIPs of Service %s/%s: %w", ns, service.Name, err)
			}
			s.inside[ns] = append(s.inside[ns], ask(ip, p.Port, ns+"-"))
		}
		for _, n := range s.Nodes {
			for _, a := range n.Config.Addrs {
				s.outside = append(s.outside, ask(a.Addr(), p.NodePort, ns+"-"))
			}
		}
		for _, to := range []string{"203.0.113.10", "2001:db8:30::a"} { // the host outside
			s.inside[ns] = append(s.inside[ns], ask(netip.MustParseAddr(to), 8080, "outside "))
		}
	}
	return nil
}

// askOutside has the host outside ask all its questions once.
func (s *beside) askOutside(ctx context.Context, into *beside) error {
	cmd := s.Outside.Command(ctx, "/opt/northbound/bin/echo", "questions", answerLimit)
	cmd.Stdin = strings.NewReader(texts(s.outside) + "\n")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("asking from outside: %w", detailed(err))
	}
	into.count("outside", s.outside, slices.Collect(strings.Lines(string(out))))
	return nil
}

// logged returns the answers that a namespace's client got, from its start on.
func (s *beside) logged(ctx context.Context, ns string) ([]string, error) {
	out, err := s.Kubectl(ctx, "logs", "--namespace="+ns, "client").Output()
	if err != nil {
		return nil, fmt.Errorf("reading the answers that namespace %s got: %w", ns, detailed(err))
	}
	return slices.Collect(strings.Lines(string(out))), nil
}

// detailed adds what a program printed to its error.
func detailed(err error) error {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}

// count compares answers with what is right. The questions were asked again and again.
func (s *beside) count(who string, asked []question, answers []string) {
	const examples = 20
	for i, line := range answers {
		q := asked[i%len(asked)]
		s.total.Connections++
		if strings.HasPrefix(line, q.answer) {
			continue
		}
		s.total.Wrong++
		if len(s.wrong) < examples {
			s.wrong = append(s.wrong, fmt.Sprintf("%s asks %s: %s", who, q.text, strings.TrimSpace(line)))
		}
	}
}

// during asks while do runs, and then reads what clients in the namespaces have logged. It is an error if an answer was
// wrong.
func (s *beside) during(ctx context.Context, do func() error) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	var errs []error
	group.Go(func() {
		for asking.Err() == nil {
			if err := s.askOutside(ctx, s); err != nil && ctx.Err() == nil {
				errs = append(errs, err)
			}
			select {
			case <-asking.Done():
			case <-time.After(2 * time.Second):
			}
		}
	})
	err := do()
	stop()
	group.Wait()
	for _, ns := range besideNamespaces() {
		if ctx.Err() != nil {
			break
		}
		lines, err := s.logged(ctx, ns)
		errs = append(errs, err)
		if before := s.before[ns]; err == nil && len(lines) <= before {
			errs = append(errs, fmt.Errorf("namespace %s has got no answers while specs ran", ns))
		} else if err == nil {
			s.count(ns, s.inside[ns], lines[before:])
		}
	}
	if s.total.Wrong > 0 {
		errs = append(errs, fmt.Errorf("asking Services of primary networks: %d of %d answers are wrong: %s", s.total.Wrong,
			s.total.Connections, strings.Join(s.wrong, "; ")))
	}
	return errors.Join(slices.Insert(errs, 0, err)...)
}

// Traffic returns the connections that were counted in the last runs, added up.
func (o Options) Traffic() (t Traffic, err error) {
	b, err := os.ReadFile(o.trafficFile())
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil {
		return t, fmt.Errorf("reading the count of connections: %w", err)
	}
	return t, nil
}

func (o Options) trafficFile() string { return filepath.Join(o.Work, "traffic.json") }

// addTraffic adds to the connections so far.
func (o Options) addTraffic(t Traffic) error {
	all, err := o.Traffic()
	if err != nil {
		return err
	}
	all.Specs += t.Specs
	all.Connections += t.Connections
	all.Wrong += t.Wrong
	b, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(o.trafficFile(), append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("recording the count of connections: %w", err)
	}
	return nil
}
