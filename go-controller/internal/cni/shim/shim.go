package shim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/northbound-net/northbound/go-controller/internal/cni/protocol"
	build "github.com/northbound-net/northbound/go-controller/internal/version"
)

// defaultSocket is the agent's socket unless the configuration has another path.
const defaultSocket = "/run/ovn-kubernetes/cni/ovn-cni-server.sock"

const connectTimeout = 5 * time.Second

// conf is the part of the network configuration that the plugin itself reads.
type conf struct {
	Socket string `json:"socket"` // path of the agent's socket
}

// SupportedVersions lists the versions of the CNI specification that the plugin supports.
func SupportedVersions() []string { return []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} }

// plugin has the output and the timeouts of one run of the program.
type plugin struct {
	out     io.Writer     // gets the result
	connect time.Duration // timeout for connecting to the agent
	answer  time.Duration // timeout for its answer
}

// Main runs one CNI command. It reads environment and standard input, and prints the result or an error to standard
// output. It returns the exit code.
func Main() int {
	if os.Getenv("CNI_COMMAND") == protocol.Del {
		// A path below /proc may lead to the node's own namespace if another process has got the process id. The library
		// would then fail a DEL that has succeeded.
		if err := os.Setenv("CNI_NETNS_OVERRIDE", "1"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	p := plugin{out: os.Stdout, connect: connectTimeout, answer: protocol.AnswerTimeout}
	call := func(command string) func(*skel.CmdArgs) error {
		return func(args *skel.CmdArgs) error { return p.forward(command, args) }
	}
	err := skel.PluginMainFuncsWithError(skel.CNIFuncs{
		Add: call(protocol.Add), Del: call(protocol.Del), Check: call(protocol.Check),
		GC: call(protocol.GC), Status: call(protocol.Status),
	}, version.PluginSupports(SupportedVersions()...),
		about(build.Get()))
	if err == nil {
		return 0
	}
	if printErr := err.Print(); printErr != nil {
		fmt.Fprintln(os.Stderr, err, printErr)
	}
	return 1
}

// about returns what the program prints when a person runs it, without a CNI command.
func about(b build.Info) string {
	return "ovn_cni " + b.String() + ": gives pods a port on the OVN network; needs the node agent, `ovnkube node`"
}

// forward sends the command to the agent and writes its result.
func (p plugin) forward(command string, args *skel.CmdArgs) error {
	var c conf
	if err := json.Unmarshal(args.StdinData, &c); err != nil {
		return types.NewError(types.ErrDecodingFailure, "decoding the network configuration", err.Error())
	}
	c.Socket = cmp.Or(c.Socket, defaultSocket)
	answer, err := p.ask(c.Socket, protocol.Request{
		Command: command, ContainerID: args.ContainerID, Netns: args.Netns, IfName: args.IfName,
		Args: args.Args, Config: args.StdinData,
	})
	if command == protocol.Del && protocol.IsAbsent(err) {
		// The runtime goes on, and removes the network namespace, and so the interface. The next agent removes its port.
		return nil
	}
	if err != nil {
		return agentError(command, c.Socket, err)
	}
	if e := answer.Error; e != nil {
		return types.NewError(e.Code, e.Msg, e.Details)
	}
	if command != protocol.Add {
		return nil
	}
	if _, err := fmt.Fprintln(p.out, string(answer.Result)); err != nil {
		return types.NewError(types.ErrIOFailure, "writing the result", err.Error())
	}
	return nil
}

// agentError is the error for the runtime if the agent does not answer.
func agentError(command, socket string, err error) error {
	if errors.Is(err, protocol.ErrTooLarge) {
		return types.NewError(types.ErrInvalidNetworkConfig, "the network configuration is too large", err.Error())
	}
	code := types.ErrTryAgainLater
	if command == protocol.Status {
		code = protocol.CodeNotAvailable
	}
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return types.NewError(code, "the node agent did not answer in time",
			fmt.Sprintf("socket %s: %v; look at the log of `ovnkube node`", socket, err))
	}
	return types.NewError(code, "the node agent is not running, or went away while it worked on this request",
		fmt.Sprintf("socket %s: %v; start `ovnkube node` on this node, or look at its log", socket, err))
}

func (p plugin) ask(socket string, r protocol.Request) (protocol.Response, error) {
	var answer protocol.Response
	c, err := net.DialTimeout("unix", socket, p.connect)
	if err != nil {
		return answer, fmt.Errorf("connecting: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(p.answer)); err != nil {
		return answer, fmt.Errorf("setting the deadline: %w", err)
	}
	if err := protocol.Write(c, r); err != nil {
		return answer, err
	}
	return answer, protocol.Read(c, &answer)
}
