package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/northbound-net/northbound/test/scale/load"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// phaseScale measures one cluster at several numbers of pods. That takes long, so the phase runs only when it is named.
const phaseScale = "scale"

// Scale says what phase scale measures.
type Scale struct {
	Sizes    []int // numbers of pods, ascending
	Nodes    int
	Services int
	Write    string // the directory of the page for the table and of the plot; "": neither is written
}

// The networks of phase scale: both address families, with room for 2,048 nodes.
const (
	scaleSubnets  = "10.128.0.0/12/23,fd01::/48/64"
	scaleServices = "10.96.0.0/16,fd02::/112"
	maxScaleNodes = 2000
)

// podsPerNamespace is the size of namespaces in phase scale.
const podsPerNamespace = 100

// check returns what is wrong with a Scale.
func (s Scale) check() error {
	var errs []error
	if s.Nodes < 1 || s.Nodes > maxScaleNodes || s.Services < 1 || s.Services > maxScaleServices {
		errs = append(errs, fmt.Errorf("--scale-nodes %d --scale-services %d: want 1 to %d and 1 to %d", s.Nodes, s.Services,
			maxScaleNodes, maxScaleServices))
	}
	before := podsPerNamespace - 1
	for _, n := range s.Sizes {
		if n <= before || s.Nodes > 0 && n/s.Nodes >= maxPodsPerNode-1 {
			errs = append(errs, fmt.Errorf("--sizes %v: want ascending numbers of at least %d pods, and less than %d a node",
				s.Sizes, podsPerNamespace, maxPodsPerNode-1))
			break
		}
		before = n
	}
	if len(s.Sizes) == 0 {
		errs = append(errs, errors.New("--sizes: want at least one number of pods"))
	}
	if s.Write != "" {
		_, _, err := s.around()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// maxScaleServices leaves endpoint addresses for the services that the changes make.
const maxScaleServices = 12000

// scaled is what was measured at one size.
type scaled struct {
	pods            int
	growth          time.Duration // the master's CPU time for each pod that was made while it ran
	fill, again     start
	replayed        start // as again, while watches are answered from memory
	heap, rss, peak int64
	changes         []effect
}

// start is what was measured of a master's start.
type start struct {
	annotated, ported time.Duration // until the pod that waited was; only with such a pod
	ready             time.Duration // until the database was what the cluster wants
	pass              time.Duration // of that, translating and comparing every owner, and writing the differences
	cpu               time.Duration
	apiServer, ovsdb  time.Duration // CPU time of the servers meanwhile
	allocated, peak   int64         // bytes
	operations        int           // that write
	patches           int
}

// scale is a running measurement of phase scale.
type scale struct {
	Scale
	*bench
	grown      int            // pods, with those that the changes made, and without those of policies and networks
	namespaces int            // of pods
	came       []int          // the numbers of the pods that changes made
	samples    map[string]int // changes so far, by kind
	out        *Scaled
}

// runScale measures phase scale.
func runScale(ctx context.Context, c Config, report *Report, tell func(string)) (err error) {
	tell(phaseScale + ": starting the API server and ovsdb-server")
	r, err := rig.New(ctx, c.Programs, "--service-cidrs="+scaleServices)
	if err != nil {
		return err
	}
	report.Scaled = &Scaled{Scale: c.Scale, Machine: hardware()}
	s := &scale{Scale: c.Scale, bench: &bench{Config: c, rig: r, report: report}, samples: map[string]int{},
		out: report.Scaled}
	defer func() {
		tell("removing everything")
		err = errors.Join(err, s.close())
	}()
	if err := s.prepareScale(ctx); err != nil {
		return err
	}
	for _, n := range c.Scale.Sizes {
		tell(fmt.Sprintf("%s: %d pods", phaseScale, n))
		err := s.size(ctx, n, tell)
		if err != nil {
			return fmt.Errorf("measuring %d pods: %w", n, err)
		}
	}
	s.checkFlat()
	return nil
}

// prepareScale makes the nodes, the services, a primary network, a master, and the pods with policies. The first
// primary network of a cluster also makes rows that all of them use.
func (s *scale) prepareScale(ctx context.Context) error {
	err := errors.Join(load.KnowNetworks(ctx, s.rig.Objects, s.Networks.Kinds),
		load.Tenant(ctx, s.rig.Kube, s.rig.Objects, "first-tenant", load.Layer2),
		load.Nodes(ctx, s.rig.Kube, s.Nodes), load.Namespace(ctx, s.rig.Kube, phaseScale),
		load.Parallel(ctx, s.Services, s.service))
	if err != nil {
		return err
	}
	if _, err = s.startScale(ctx); err != nil {
		return err
	}
	if err := s.prepareScalePolicies(ctx); err != nil {
		return err
	}
	return s.master.WaitValues(ctx, func(value func(string, ...string) float64) bool {
		return value(podPatches, podKind) >= podsWithPolicies && value("northbound_owners_dirty") == 0
	})
}

// service makes the i-th service of both families, with its endpoints.
func (s *scale) service(ctx context.Context, i int) error {
	return errors.Join(load.CreateDualService(ctx, s.rig.Kube, phaseScale, i),
		load.CreateBackends(ctx, s.rig.Kube, phaseScale, i, true),
		load.CreateBackends(ctx, s.rig.Kube, phaseScale, i, false))
}

// startScale starts the master and waits until the database is what the cluster wants.
func (s *scale) startScale(ctx context.Context) (out start, err error) {
	s.master, err = s.rig.StartMasterAt(ctx, rig.MetricsAddr, "--leader-elect=false", "--cluster-subnets", scaleSubnets,
		"--k8s-service-cidrs", scaleServices, "--max-namespace-vips=0") // all services are in one namespace
	if err != nil {
		return out, err
	}
	return out, s.whole(ctx, &out)
}

// whole waits until a master that has just started has written everything, and reads what that took.
func (s *scale) whole(ctx context.Context, out *start) error {
	ready, err := s.master.WaitReady(ctx)
	if err != nil {
		return err
	}
	out.ready = ready.Sub(s.master.Started)
	allocated, err := s.master.Value(ctx, "go_memstats_alloc_bytes_total")
	if err != nil {
		return err
	}
	pass, err := s.master.Value(ctx, "northbound_full_pass_seconds")
	if err != nil {
		return err
	}
	u, err := s.master.Usage()
	out.allocated, out.pass, out.cpu, out.peak = int64(allocated), time.Duration(pass*1e9), u.CPU, u.Peak
	return err
}

// size measures one number of pods.
func (s *scale) size(ctx context.Context, pods int, tell func(string)) error {
	before, err := spent(s.rig, s.master)
	if err != nil {
		return err
	}
	missing := pods - s.grown
	if err := s.growTo(ctx, pods); err != nil {
		return err
	}
	after, err := spent(s.rig, s.master)
	if err != nil {
		return err
	}
	took := after.sub(before)
	s.report.disturbed(fmt.Sprintf("%d pods", pods), took)
	out := scaled{pods: pods, growth: took.master / time.Duration(missing)}
	tell("  into an empty database")
	if err := s.fill(ctx, &out); err != nil {
		return err
	}
	if s.observer, err = load.Observe(ctx, s.rig.Kube, s.rig.NB.Socket); err != nil {
		return err
	}
	defer func() { s.observer.Close(); s.observer = nil }()
	tell("  one change of each kind")
	if out.changes, err = s.effects(ctx); err != nil {
		return err
	}
	tell("  a restart")
	if err := s.startAgain(ctx, &out); err != nil {
		return err
	}
	tell("  a restart, the watches answered from memory")
	if err := s.replay(ctx, &out); err != nil {
		return fmt.Errorf("answering watches from memory: %w", err)
	}
	last, err := s.effect(ctx, podGoes())
	if err != nil {
		return fmt.Errorf("pods go: %w", err)
	}
	out.changes = append(out.changes, last)
	s.out.Sizes = append(s.out.Sizes, out)
	return nil
}

// growTo makes pods until there are so many, and waits until all have their network.
func (s *scale) growTo(ctx context.Context, pods int) error {
	patched, err := s.master.Value(ctx, podPatches, podKind)
	if err != nil {
		return err
	}
	first, last, missing := s.namespaces, (pods-1)/podsPerNamespace, pods-s.grown
	err = load.Parallel(ctx, last+1-first, func(ctx context.Context, i int) error {
		return load.Namespace(ctx, s.rig.Kube, namespaceOf((first+i)*podsPerNamespace))
	})
	if err != nil {
		return err
	}
	s.namespaces = last + 1
	err = load.Parallel(ctx, missing, func(ctx context.Context, i int) error {
		_, _, err := load.CreatePod(ctx, s.rig.Kube, namespaceOf(s.grown+i), s.grown+i, s.Nodes)
		return err
	})
	if err != nil {
		return err
	}
	s.grown = pods
	return s.master.WaitValues(ctx, func(value func(string, ...string) float64) bool {
		return value(podPatches, podKind) >= patched+float64(missing) && value("northbound_owners_dirty") == 0
	})
}

// The master's counter of the patches of pods.
const (
	podPatches = "northbound_k8s_patches_total"
	podKind    = `kind="Pod",result="ok"`
)

// namespaceOf is the namespace of the i-th pod.
func namespaceOf(i int) string { return fmt.Sprintf("ns-%05d", i/podsPerNamespace) }

// fill measures a master that starts beside an empty database: it translates the whole cluster and writes it.
func (s *scale) fill(ctx context.Context, out *scaled) error {
	if err := s.stopMaster(); err != nil {
		return err
	}
	if err := s.rig.ReplaceNorthbound(ctx, fmt.Sprintf("nb-%d", out.pods)); err != nil {
		return err
	}
	var err error
	if out.fill, err = s.startScale(ctx); err != nil {
		return err
	}
	counts, err := s.rig.Counts(ctx, s.master)
	out.fill.operations = counts.Operations
	return err
}

func (s *scale) stopMaster() error {
	m := s.master
	s.master = nil
	return m.Stop()
}

// startAgain measures a master that starts when everything is written, except for a pod that waits.
func (s *scale) startAgain(ctx context.Context, out *scaled) error {
	before, err := s.again(ctx)
	if err != nil {
		return err
	}
	if err := s.addPod(ctx); err != nil {
		return err
	}
	if out.again, err = s.startWithPod(ctx); err != nil {
		return err
	}
	if err := s.withoutNeed(ctx, before, out.pods, &out.again); err != nil {
		return err
	}
	return s.memory(ctx, out)
}

// startWithPod starts the master and measures when it has served the pod that was made last, which waits.
func (s *scale) startWithPod(ctx context.Context) (out start, err error) {
	pod := load.Name{Namespace: namespaceOf(0), Name: load.PodName(s.grown - 1)}
	stopped, err := spent(s.rig, nil)
	if err != nil {
		return out, err
	}
	if out, err = s.startScale(ctx); err != nil {
		return out, err
	}
	ready, err := spent(s.rig, nil)
	if err != nil {
		return out, err
	}
	servers := ready.sub(stopped)
	out.apiServer, out.ovsdb = servers.apiServer, servers.ovsdb
	annotated, err := s.observer.Annotated.WaitName(ctx, pod)
	if err != nil {
		return out, err
	}
	ported, err := s.observer.Ported.WaitName(ctx, pod)
	if err != nil {
		return out, err
	}
	out.annotated, out.ported = annotated.Sub(s.master.Started), ported.Sub(s.master.Started)
	return out, nil
}

// withoutNeed counts what the restart wrote beside the new pod's own.
func (s *scale) withoutNeed(ctx context.Context, before rig.Counts, pods int, out *start) error {
	counts, err := s.rig.Counts(ctx, s.master)
	if err != nil {
		return err
	}
	wrote := counts.Sub(before)
	out.operations = wrote.Operations - podOperations
	out.patches = max(wrote.Patches, wrote.PodPatches+wrote.NodePatches) - ownPatches
	if out.operations != 0 || out.patches != 0 {
		s.report.violate("%d pods: a restart wrote %d operations and %d patches without need, want 0", pods,
			out.operations, out.patches)
	}
	return nil
}

// memory measures the master after the restart.
func (s *scale) memory(ctx context.Context, out *scaled) (err error) {
	if out.heap, err = s.master.LiveHeap(ctx); err != nil {
		return err
	}
	u, err := s.master.Usage()
	out.rss, out.peak = u.RSS, u.Peak
	return err
}
