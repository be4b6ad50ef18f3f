package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
)

// certificates are mutual TLS from files that change under a running process, as Kubernetes mounts
// Secrets: read again for each new connection. Files that do not fit together leave the last good set.
type certificates struct {
	certFile, keyFile, caFile string
	good                      atomic.Pointer[tls.Config]
}

// tlsConfig is nil where no file is named. All three go together.
func tlsConfig(certFile, keyFile, caFile string) (*tls.Config, error) {
	if certFile == "" && keyFile == "" && caFile == "" {
		return nil, nil
	}
	if certFile == "" || keyFile == "" || caFile == "" {
		return nil, errors.New("--tls-cert, --tls-key and --tls-ca go together")
	}
	files := &certificates{certFile: certFile, keyFile: keyFile, caFile: caFile}
	first, err := files.read()
	if err != nil {
		return nil, err
	}
	files.good.Store(first)
	config := first.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return files.current(), nil }
	return config, nil
}

func (c *certificates) current() *tls.Config {
	fresh, err := c.read()
	if err != nil {
		slog.Warn("keeping the certificates of before", "error", err)
		return c.good.Load()
	}
	c.good.Store(fresh)
	return fresh
}

func (c *certificates) read() (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read certificate and key: %w", err)
	}
	authority, err := os.ReadFile(c.caFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the clients' authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", c.caFile)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2"},
	}, nil
}

// isLoopback: plaintext is for one machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
