package tlsfiles

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	"github.com/northbound-net/northbound/go-controller/internal/config"
)

// lookAgain is how often WatchExpiry reads the files.
const lookAgain = time.Minute

// WatchExpiry reports when the certificates of a connection end, in seconds since 1970: at once, and every minute until
// ctx ends. The part is "certificate" or "authority". Nothing is reported of a file that cannot be read.
func WatchExpiry(ctx context.Context, k config.Keys, report func(part string, at float64)) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		for part, file := range map[string]string{"certificate": k.Cert, "authority": k.CACert} {
			if file == "" {
				continue
			}
			if at, err := Expiry(file); err == nil {
				report(part, float64(at.Unix()))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Expiry is when the first certificate in a PEM file ends. Other blocks, such as a private key, are skipped.
func Expiry(file string) (time.Time, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the expiry of a certificate: %w", err)
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return time.Time{}, fmt.Errorf("reading the expiry of a certificate: %s: no PEM certificate in it", file)
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, fmt.Errorf("reading the expiry of certificate %s: %w", file, err)
		}
		return c.NotAfter, nil
	}
}
