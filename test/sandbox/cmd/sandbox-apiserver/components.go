package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controlleroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// parse sets a component's options from its own command-line flags.
func parse(name string, sets cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, f := range sets.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("parsing the flags of %s: %w", name, err)
	}
	return nil
}

func runAPIServer(ctx context.Context, c config, etcd string) error {
	s := apiserveroptions.NewServerRunOptions()
	args := append([]string{
		"--bind-address=" + c.bind,
		"--advertise-address=" + c.advertise,
		fmt.Sprintf("--secure-port=%d", c.port),
		"--etcd-servers=" + etcd,
		"--service-cluster-ip-range=" + c.serviceCIDRs,
		"--tls-cert-file=" + c.file("apiserver.crt"),
		"--tls-private-key-file=" + c.file("apiserver.key"),
		"--client-ca-file=" + c.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file("sa.key"),
		"--service-account-signing-key-file=" + c.file("sa.key"),
		"--kubelet-client-certificate=" + c.file("kubelet-client.crt"),
		"--kubelet-client-key=" + c.file("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--authorization-mode=" + c.authorizers,
		"--enable-admission-plugins=NodeRestriction", // as kubeadm has it
		"--allow-privileged=true",
		"--enable-bootstrap-token-auth=false",
		"--profiling=false",
	}, c.extra...)
	if err := parse("kube-apiserver", s.Flags(), args); err != nil {
		return err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("starting kube-apiserver: %w", err)
	}
	done, err := s.Complete(ctx)
	if err != nil {
		return fmt.Errorf("completing the options of kube-apiserver: %w", err)
	}
	if errs := done.Validate(); len(errs) > 0 {
		return fmt.Errorf("validating the options of kube-apiserver: %v", errs)
	}
	if err := apiserver.Run(ctx, done); err != nil {
		return fmt.Errorf("running kube-apiserver: %w", err)
	}
	return nil
}

// waitReady waits until /readyz says ok.
func waitReady(ctx context.Context, c config, errs <-chan error) error {
	conf, err := clientcmd.BuildConfigFromFlags("", c.file("admin.kubeconfig"))
	if err != nil {
		return fmt.Errorf("reading admin.kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return fmt.Errorf("reading admin.kubeconfig: %w", err)
	}
	for {
		code := 0
		client.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		if code == http.StatusOK {
			return nil
		}
		select {
		case err := <-errs:
			return err
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func runControllers(ctx context.Context, c config) error {
	s, err := controlleroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("starting kube-controller-manager: %w", err)
	}
	all, aliases := controllers.KnownControllers(), controllers.ControllerAliases()
	disabled := controllers.ControllersDisabledByDefault()
	sets := s.Flags(all, disabled, aliases)
	args := []string{
		"--kubeconfig=" + c.file("admin.kubeconfig"),
		"--use-service-account-credentials", // as kubeadm has it: a pod's author gets no rights of an administrator
		"--controllers=" + c.controllers,
		"--leader-elect=false",
		"--secure-port=0",
		"--service-account-private-key-file=" + c.file("sa.key"),
		"--root-ca-file=" + c.file("ca.crt"),
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}
	if err := parse("kube-controller-manager", sets, args); err != nil {
		return err
	}
	s.ParsedFlags = &sets
	if err := s.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("starting kube-controller-manager: %w", err)
	}
	conf, err := s.Config(ctx, all, disabled, aliases)
	if err != nil {
		return fmt.Errorf("completing the options of kube-controller-manager: %w", err)
	}
	if err := controllers.Run(ctx, conf.Complete()); err != nil {
		return fmt.Errorf("running kube-controller-manager: %w", err)
	}
	return nil
}

func runScheduler(ctx context.Context, c config) error {
	o := scheduleroptions.NewOptions()
	args := []string{
		"--kubeconfig=" + c.file("admin.kubeconfig"),
		"--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000",
	}
	if err := parse("kube-scheduler", *o.Flags, args); err != nil {
		return err
	}
	if err := o.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("starting kube-scheduler: %w", err)
	}
	conf, s, err := scheduler.Setup(ctx, o)
	if err != nil {
		return fmt.Errorf("completing the options of kube-scheduler: %w", err)
	}
	if err := scheduler.Run(ctx, conf, s); err != nil {
		return fmt.Errorf("running kube-scheduler: %w", err)
	}
	return nil
}
