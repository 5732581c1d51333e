package shim

import (
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
)

// defaultSocket is where the agent listens unless the configuration tells.
const defaultSocket = "/run/ovn-kubernetes/cni/ovn-cni-server.sock"

// connectTimeout bounds connecting to the socket: the agent accepts at once or
// it is not there.
const connectTimeout = 5 * time.Second

// conf is what the plugin itself reads of its network configuration.
type conf struct {
	Socket string `json:"socket"` // path of the agent's socket
}

// SupportedVersions lists the versions of the CNI specification that the
// plugin speaks.
func SupportedVersions() []string { return []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} }

// Main runs one CNI command: environment and standard input in, result or
// error on standard output. It is the exit code.
func Main() int {
	call := func(command string) func(*skel.CmdArgs) error {
		return func(args *skel.CmdArgs) error { return forward(command, args, os.Stdout) }
	}
	err := skel.PluginMainFuncsWithError(skel.CNIFuncs{
		Add: call(protocol.Add), Del: call(protocol.Del), Check: call(protocol.Check),
		GC: call(protocol.GC), Status: call(protocol.Status),
	}, version.PluginSupports(SupportedVersions()...), "ovn_cni: gives pods a port on the OVN network; needs the node agent, `ovnkube node`")
	if err == nil {
		return 0
	}
	if printErr := err.Print(); printErr != nil {
		fmt.Fprintln(os.Stderr, err, printErr)
	}
	return 1
}

// forward sends the command to the agent and writes its result to out.
func forward(command string, args *skel.CmdArgs, out io.Writer) error {
	var c conf
	if err := json.Unmarshal(args.StdinData, &c); err != nil {
		return types.NewError(types.ErrDecodingFailure, "decoding the network configuration", err.Error())
	}
	if c.Socket == "" {
		c.Socket = defaultSocket
	}
	answer, err := ask(c.Socket, protocol.Request{
		Command: command, ContainerID: args.ContainerID, Netns: args.Netns, IfName: args.IfName,
		Args: args.Args, Config: args.StdinData,
	})
	if err != nil {
		return agentError(command, c.Socket, err)
	}
	if e := answer.Error; e != nil {
		return types.NewError(e.Code, e.Msg, e.Details)
	}
	if command != protocol.Add {
		return nil
	}
	if _, err := fmt.Fprintln(out, string(answer.Result)); err != nil {
		return types.NewError(types.ErrIOFailure, "writing the result", err.Error())
	}
	return nil
}

// agentError is what the runtime is told when the agent can't be asked.
func agentError(command, socket string, err error) error {
	code := types.ErrTryAgainLater
	if command == protocol.Status {
		code = protocol.CodeNotAvailable
	}
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return types.NewError(code, "the node agent did not answer in time", fmt.Sprintf("%v; look at the log of `ovnkube node`", err))
	}
	return types.NewError(code, "the node agent is not running, or went away while it worked on this request",
		fmt.Sprintf("socket %s: %v; start `ovnkube node` on this node, or look at its log", socket, err))
}

func ask(socket string, r protocol.Request) (protocol.Response, error) {
	var answer protocol.Response
	c, err := net.DialTimeout("unix", socket, connectTimeout)
	if err != nil {
		return answer, fmt.Errorf("connecting: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(protocol.AnswerTimeout)); err != nil {
		return answer, fmt.Errorf("setting the deadline: %w", err)
	}
	if err := protocol.Write(c, r); err != nil {
		return answer, err
	}
	return answer, protocol.Read(c, &answer)
}
