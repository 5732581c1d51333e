package bench

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/northbound-net/northbound/test/scale/process"
	"github.com/northbound-net/northbound/test/scale/rig"
)

// cost is the CPU time that everyone has used so far, or between two moments.
type cost struct {
	at                                      time.Time
	took                                    time.Duration // between the two moments
	machine, master, apiServer, ovsdb, self time.Duration
}

// spent reads the CPU time that everyone has used so far. m may be nil.
func spent(r *rig.Rig, m *rig.Master) (c cost, err error) {
	c.at = time.Now()
	if c.machine, err = process.Machine(); err != nil {
		return c, err
	}
	for pid, d := range map[int]*time.Duration{r.APIServer.PID(): &c.apiServer, r.NB.PID(): &c.ovsdb,
		os.Getpid(): &c.self} {
		u, err := process.UsageOf(pid)
		if err != nil {
			return c, err
		}
		*d = u.CPU
	}
	if m != nil {
		u, err := m.Usage()
		if err != nil {
			return c, err
		}
		c.master = u.CPU
	}
	return c, nil
}

func (c cost) sub(o cost) cost {
	return cost{at: c.at, took: c.at.Sub(o.at), machine: c.machine - o.machine, master: c.master - o.master,
		apiServer: c.apiServer - o.apiServer, ovsdb: c.ovsdb - o.ovsdb, self: c.self - o.self}
}

// ours is the CPU time of all that take part in the measurement.
func (c cost) ours() time.Duration { return c.master + c.apiServer + c.ovsdb + c.self }

// others is the CPU time of programs that do not take part in the measurement.
func (c cost) others() time.Duration { return max(0, c.machine-c.ours()) }

// noise is the share of the machine that others used, 0 to 1.
func (c cost) noise() float64 {
	return float64(c.others()) / float64(c.took) / float64(runtime.NumCPU())
}

// String lists the CPU time by user.
func (c cost) String() string {
	return fmt.Sprintf("API server %s, ovsdb-server %s, this program %s, strangers %s",
		seconds(c.apiServer), seconds(c.ovsdb), seconds(c.self), seconds(c.others()))
}
