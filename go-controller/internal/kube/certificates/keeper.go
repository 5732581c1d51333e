package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"

	"github.com/northbound-net/northbound/go-controller/internal/atomicfile"
	"github.com/northbound-net/northbound/go-controller/internal/pki"
)

// How often a Keeper looks whether a certificate has come, and whether the authority has changed.
const (
	lookForCertificate = 200 * time.Millisecond
	lookForAuthority   = time.Minute
)

// Holder is who holds certificates.
type Holder string

// Holders.
const (
	Database Holder = "database" // the servers of both databases
	Master   Holder = "master"   // a client of the Northbound database
	Node     Holder = "node"     // a node's ovn-controller
)

// Holders lists all.
func Holders() []Holder { return []Holder{Database, Master, Node} }

// Wanted is a certificate to get.
type Wanted struct {
	Authority  string // Northbound or Southbound
	CommonName string
	Server     bool // for a database's servers, which are clients of each other, too
}

// Of lists the certificates of a holder. node is the name of a Node's holder.
func Of(h Holder, node string) (out []Wanted) {
	account := map[Holder]string{Database: databaseAccount, Master: masterAccount, Node: nodeAccount}[h]
	for _, e := range entitlements() {
		if e.account != account {
			continue
		}
		w := Wanted{Authority: e.authority, CommonName: e.commonName, Server: e.server}
		if w.CommonName == "" {
			w.CommonName = node
		}
		out = append(out, w)
	}
	return out
}

// Keeper gets a certificate into a directory, and renews it there before it ends.
//
// The file ovn-AUTHORITY-current.pem has the certificate and its private key, ovn-AUTHORITY-ca.crt what its holder
// trusts. Readers see either the old or the new contents.
type Keeper struct {
	Kube      kubernetes.Interface
	Namespace string // of the authorities
	Directory string
	Wanted    Wanted
	Log       *slog.Logger
	Lifetime  time.Duration // 0: the signer's default
}

func (k Keeper) caFile() string {
	return filepath.Join(k.Directory, "ovn-"+k.Wanted.Authority+"-ca.crt")
}

// Run keeps the certificate until ctx ends. It calls ready once the files can be used.
func (k Keeper) Run(ctx context.Context, ready func()) error {
	logged := ""
	for ctx.Err() == nil {
		ca, err := k.authority(ctx)
		if err != nil {
			if err.Error() != logged {
				logged = err.Error()
				k.Log.Warn("waiting for the authority's certificate", "error", err, "usable", k.usable() == nil)
			}
			if k.usable() == nil {
				ready() // a node that boots without the API server
			}
			wait(ctx, again)
			continue
		}
		if err := k.keep(ctx, ca, ready); err != nil {
			return err
		}
	}
	return nil
}

// authority reads the certificate of the authority.
func (k Keeper) authority(ctx context.Context) ([]byte, error) {
	name := objectName(k.Wanted.Authority)
	have, err := k.Kube.CoreV1().ConfigMaps(k.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", k.Namespace, name, err)
	}
	if have.Data[caKey] == "" {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: key %s is empty: want a certificate in PEM", k.Namespace, name,
			caKey)
	}
	return []byte(have.Data[caKey]), nil
}

// usable returns an error unless the directory has a certificate of the authority there, for the right name.
func (k Keeper) usable() error {
	ca, err := os.ReadFile(k.caFile())
	if err != nil {
		return err
	}
	store, err := k.store()
	if err != nil {
		return err
	}
	pair, err := store.Current()
	if err != nil {
		return err
	}
	return k.fits(pair, ca)
}

func (k Keeper) fits(pair *tls.Certificate, ca []byte) error {
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return err
	}
	if leaf.Subject.CommonName != k.Wanted.CommonName {
		return fmt.Errorf("certificate of %q: want %q", leaf.Subject.CommonName, k.Wanted.CommonName)
	}
	return pki.Issued(leaf, ca, time.Now())
}

func (k Keeper) store() (certificate.FileStore, error) {
	s, err := certificate.NewFileStoreWithLogger(klog.Background(), "ovn-"+k.Wanted.Authority, k.Directory, k.Directory,
		"", "")
	if err != nil {
		return nil, fmt.Errorf("opening the certificates in %s: %w", k.Directory, err)
	}
	return s, nil
}

// keep gets and renews the certificate until the authority changes or ctx ends.
func (k Keeper) keep(ctx context.Context, ca []byte, ready func()) error {
	store, err := k.store()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	manager, err := k.manager(ctx, fitting{store, k, ca})
	if err != nil {
		return err
	}
	manager.Start()
	defer manager.Stop()
	for manager.Current() == nil && ctx.Err() == nil {
		wait(ctx, lookForCertificate)
	}
	if ctx.Err() != nil {
		return nil
	}
	// A certificate that is used stays trusted until its successor is there.
	if have, err := os.ReadFile(k.caFile()); err != nil || !bytes.Equal(have, ca) {
		if err := atomicfile.Write(k.caFile(), ca, 0o644); err != nil {
			return fmt.Errorf("writing the authority's certificate: %w", err)
		}
	}
	ready()
	for ctx.Err() == nil {
		wait(ctx, lookForAuthority)
		if now, err := k.authority(ctx); err == nil && !bytes.Equal(now, ca) {
			k.Log.Info("the authority has changed", "authority", k.Wanted.Authority)
			return nil
		}
	}
	return nil
}

// fitting is a store that has no certificate if it is not of the present authority, or has another name.
type fitting struct {
	certificate.Store
	keeper Keeper
	ca     []byte
}

// Current returns the stored certificate, or an error that has a new one requested.
func (f fitting) Current() (*tls.Certificate, error) {
	pair, err := f.Store.Current()
	if err != nil {
		return nil, err
	}
	if err := f.keeper.fits(pair, f.ca); err != nil {
		f.keeper.Log.Info("replacing a certificate", "authority", f.keeper.Wanted.Authority, "reason", err)
		missing := certificate.NoCertKeyError(err.Error())
		return nil, &missing
	}
	return pair, nil
}

// manager requests certificates and stores them.
func (k Keeper) manager(ctx context.Context, store certificate.Store) (certificate.Manager, error) {
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	if k.Wanted.Server {
		usages = append(usages, certificatesv1.UsageServerAuth)
	}
	c := &certificate.Config{
		ClientsetFn:      func(*tls.Certificate) (kubernetes.Interface, error) { return k.Kube, nil },
		Template:         &x509.CertificateRequest{Subject: pkix.Name{CommonName: k.Wanted.CommonName}},
		SignerName:       signerName(k.Wanted.Authority),
		Usages:           usages,
		CertificateStore: store,
		Ctx:              &ctx,
	}
	if k.Lifetime > 0 {
		c.RequestedCertificateLifetime = &k.Lifetime
	}
	m, err := certificate.NewManager(c)
	if err != nil {
		return nil, fmt.Errorf("preparing the request of a certificate: %w", err)
	}
	return m, nil
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
