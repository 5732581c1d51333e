package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/northbound-net/northbound/go-controller/internal/config"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// look is the least time between two looks at the Lease. client-go waits up to 2.2 times as long. A standby that sees
// the last renewal so late, and its expiry so late, leads less than a second after the Lease has expired.
const look = 200 * time.Millisecond

// Leader is this process as one of several masters.
type Leader struct {
	config   config.LeaderElection
	lease    *resourcelock.LeaseLock
	log      *slog.Logger
	identity string
	deadline time.Duration // without a renewal for so long, a leader stops

	mu       sync.Mutex
	seen     time.Time   // when the Lease was last read
	unseen   error       // why it could not be read since
	renewed  time.Time   // when the last renewal was sent that succeeded; zero before this process leads
	expiry   *time.Timer // calls lose when the deadline has passed
	lost     error       // why this process leads no longer
	stopWork context.CancelFunc
}

// New prepares an election. It asks nothing yet.
func New(c *client.Clients, e config.LeaderElection, log *slog.Logger) (*Leader, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding an identity for leader election: %w", err)
	}
	// The name of a host and a process ID may come again, in another container.
	id := host + "_" + uuid.NewString()
	return &Leader{
		config: e, log: log, identity: id, deadline: e.Lease * 2 / 3, stopWork: func() {},
		lease: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
			Client:     c.GatewayLeases(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: id},
		},
	}, nil
}

// Identity is this process among all that ever took part.
func (l *Leader) Identity() string { return l.identity }

// Holds is why this process must not work, as far as it knows without asking; nil while it leads. It asks the clock, so
// it is right as soon as a process continues that was stopped.
func (l *Leader) Holds() error {
	if !l.config.Enabled {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil:
		return l.lost
	case l.renewed.IsZero():
		return errors.New("the lease is not held yet")
	case time.Since(l.renewed) >= l.deadline:
		return l.notRenewed()
	}
	return nil
}

// see records that the Lease was read, or why not.
func (l *Leader) see(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unseen = err; err == nil || apierrors.IsNotFound(err) {
		l.seen, l.unseen = time.Now(), nil
	}
}

// Watches is why this process, as a standby, would not notice that nobody leads: it has not read the Lease for as long
// as that lasts. It is nil if it has.
func (l *Leader) Watches() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := cmp.Or(l.unseen, errors.New("the API server does not answer"))
	switch since := time.Since(l.seen); {
	case l.seen.IsZero():
		return fmt.Errorf("the lease %s was not read yet: %w", l.lease.Describe(), why)
	case since > l.config.Lease:
		return fmt.Errorf("the lease %s was not read for %s: %w", l.lease.Describe(), since.Round(time.Second), why)
	}
	return nil
}

// Holder asks the API server who holds the Lease. Without leader election it is this process.
func (l *Leader) Holder(ctx context.Context) (string, error) {
	if !l.config.Enabled {
		return l.identity, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.deadline)
	defer cancel()
	lease, err := l.lease.Client.Leases(l.config.Namespace).Get(ctx, l.config.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// Run calls work when this process leads, and returns when work has ended. It returns an error when the Lease is lost:
// the context of work ends at once, and the Lease is not touched any more. Otherwise the Lease is released after work
// has ended. Without leader election this process leads at once.
func (l *Leader) Run(ctx context.Context, work func(context.Context) error) error {
	if !l.config.Enabled {
		return work(ctx)
	}
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &lock{LeaseLock: l.lease, leader: l}, Name: l.config.Name,
		LeaseDuration: l.config.Lease, RenewDeadline: l.deadline, RetryPeriod: look,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				ended <- l.lead(ctx, work)
				stop()
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      func(id string) { l.log.Info("leader elected", "identity", id) },
		},
	})
	if err != nil {
		return fmt.Errorf("preparing leader election: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		if !l.led() {
			stop() // a standby has nothing to end
		}
	})()
	elector.Run(electing)
	if !l.led() {
		return nil
	}
	if electing.Err() == nil {
		l.lose(l.notRenewed())
	}
	workErr := <-ended
	l.mu.Lock()
	lost := l.lost
	l.expiry.Stop()
	l.mu.Unlock()
	if lost == nil {
		l.release()
	}
	return cmp.Or(lost, workErr)
}

// lead works until ctx ends or the Lease is lost.
func (l *Leader) lead(ctx context.Context, work func(context.Context) error) error {
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.stopWork = cancel
	if l.lost != nil {
		cancel()
	}
	l.mu.Unlock()
	l.log.Info("leading", "lease", l.lease.Describe(), "identity", l.identity)
	return work(working)
}

// led tells whether this process has held the Lease.
func (l *Leader) led() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero()
}

// renew records that a renewal succeeded that was sent at this time.
func (l *Leader) renew(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = sent
	left := l.deadline - time.Since(sent)
	if l.expiry == nil {
		l.expiry = time.AfterFunc(left, func() { l.lose(l.notRenewed()) })
	} else {
		l.expiry.Reset(left)
	}
}

// lose ends the work at once.
func (l *Leader) lose(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost = why
	}
	l.stopWork()
}

func (l *Leader) notRenewed() error {
	return fmt.Errorf("the lease %s was not renewed for %s: another master may lead", l.lease.Describe(), l.deadline)
}

// release lets another master lead at once.
func (l *Leader) release() {
	ctx, cancel := context.WithTimeout(context.Background(), l.deadline)
	defer cancel()
	record, _, err := l.lease.Get(ctx)
	if err == nil && record.HolderIdentity == l.identity {
		record.HolderIdentity, record.LeaseDurationSeconds = "", 1
		err = l.lease.Update(ctx, *record)
	}
	if err != nil {
		l.log.Warn("the lease is not released: it expires", "lease", l.lease.Describe(), "error", err)
	}
}
