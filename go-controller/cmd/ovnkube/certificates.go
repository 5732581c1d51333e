package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/northbound-net/northbound/go-controller/internal/kube/certificates"
	"github.com/northbound-net/northbound/go-controller/internal/kube/client"
)

// authorityNamespaceFlag is the namespace of what the chart installs.
func authorityNamespaceFlag() cli.Flag {
	return stringFlag("namespace", "ovn-kubernetes", "`NAMESPACE` of the authorities and of the ServiceAccounts that get "+
		"certificates")
}

// signerCommand is `ovnkube signer`.
func signerCommand() *cli.Command {
	return &cli.Command{
		Name:  "signer",
		Usage: "sign certificates for OVN's databases and their clients, in a cluster whose databases run in pods",
		Description: "Answers CertificateSigningRequests of the signers northbound.io/ovn-nb and northbound.io/ovn-sb.\n" +
			"Makes the authorities' Secrets, ovn-nb-ca and ovn-sb-ca, if they are missing.",
		Flags: slices.Concat([]cli.Flag{authorityNamespaceFlag()}, kubernetesFlags(), logFlags("info")),
		Action: func(c *cli.Context) error {
			log, err := newLog(c, c.App.ErrWriter)
			if err != nil {
				return err
			}
			clients, err := client.New(kubernetesConfig(c), "ovnkube-signer")
			if err != nil {
				return err
			}
			s := certificates.Signer{Kube: clients.Kube, Namespace: c.String("namespace"), Log: log}
			return s.Run(c.Context)
		},
	}
}

// certificatesCommand is `ovnkube certificates`.
func certificatesCommand() *cli.Command {
	return &cli.Command{
		Name:  "certificates",
		Usage: "get certificates from `ovnkube signer`, and renew them",
		Description: "Each certificate is a file, ovn-nb-current.pem or ovn-sb-current.pem, with its private key.\n" +
			"The certificate of its authority is ovn-nb-ca.crt or ovn-sb-ca.crt.",
		Flags: slices.Concat([]cli.Flag{
			stringFlag("for", "", "`PROGRAM` that the certificates are for: node, master or database; required"),
			stringFlag("node-name", "", "`NAME` of the Kubernetes Node, with --for=node"),
			stringFlag("directory", "/var/lib/northbound/certificates", "`DIR` for the files"),
			boolFlag("once", "exit when every certificate can be used"),
			authorityNamespaceFlag(),
		}, kubernetesFlags(), logFlags("info")),
		Action: runCertificates,
	}
}

func runCertificates(c *cli.Context) error {
	holder := certificates.Holder(c.String("for"))
	if !slices.Contains(certificates.Holders(), holder) {
		return usageError{fmt.Errorf("--for %q: want node, master or database", holder)}
	}
	if holder == certificates.Node && c.String("node-name") == "" {
		return usageError{errors.New("--node-name: --for=node needs it")}
	}
	log, err := newLog(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	clients, err := client.New(kubernetesConfig(c), "ovnkube-certificates")
	if err != nil {
		return err
	}
	directory := c.String("directory")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("making the directory of certificates: %w", err)
	}
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	var waiting, running sync.WaitGroup
	wanted := certificates.Of(holder, c.String("node-name"))
	errs := make([]error, len(wanted))
	for i, w := range wanted {
		k := certificates.Keeper{Kube: clients.Kube, Namespace: c.String("namespace"), Directory: directory, Wanted: w,
			Log: log}
		waiting.Add(1)
		done := sync.OnceFunc(waiting.Done)
		ready := sync.OnceFunc(func() {
			log.Info("certificate ready", "authority", w.Authority, "name", w.CommonName, "directory", directory)
			done()
		})
		running.Go(func() {
			if errs[i] = k.Run(ctx, ready); errs[i] != nil {
				cancel()
			}
			done() // nobody waits for one that has failed
		})
	}
	if c.Bool("once") {
		waiting.Wait()
		cancel()
	}
	running.Wait()
	return errors.Join(errs...)
}
