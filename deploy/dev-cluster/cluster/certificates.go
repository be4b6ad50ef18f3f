package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files of the folder "pki" below the data folder.
const (
	pkiFolder          = "pki"
	caCertificateFile  = pkiFolder + "/ca.crt"
	serverCertificate  = pkiFolder + "/apiserver.crt"
	serverKeyFile      = pkiFolder + "/apiserver.key"
	serviceAccountKey  = pkiFolder + "/service-account.key"
	certificateYears   = 10
	clockSkewAllowance = time.Hour
)

// clients are the identities the cluster makes certificates for. The controller manager is no
// super user: its controllers act as their own ServiceAccounts, as kubeadm sets it up.
var clients = map[string]pkix.Name{
	"admin":              {CommonName: "admin", Organization: []string{"system:masters"}},
	"controller-manager": {CommonName: "system:kube-controller-manager"},
}

// ensurePKI makes the authority, the certificates and the ServiceAccount key of a new data
// folder, and keeps those of an old one: tokens and kubeconfigs outlive a restart. The folder
// appears at once and whole, so that a kill in the middle leaves no half of it.
func ensurePKI() error {
	if _, err := os.Stat(pkiFolder); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temporary, err := os.MkdirTemp(".", "pki-*.tmp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := writePKI(temporary); err != nil {
		return fmt.Errorf("cannot make certificates: %w", err)
	}
	return os.Rename(temporary, pkiFolder)
}

func writePKI(folder string) error {
	authority, err := newAuthority(folder)
	if err != nil {
		return err
	}
	server := x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if err := authority.issue("apiserver", server); err != nil {
		return err
	}
	for name, subject := range clients {
		usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		if err := authority.issue(name, x509.Certificate{Subject: subject, ExtKeyUsage: usage}); err != nil {
			return err
		}
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	return writeKey(filepath.Join(folder, filepath.Base(serviceAccountKey)), key)
}

type authority struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(folder string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		Subject:               pkix.Name{CommonName: "dev-cluster-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	self := &authority{folder: folder, certificate: &template, key: key}
	der, err := self.sign(&template, key.Public())
	if err != nil {
		return nil, err
	}
	if self.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return self, self.write("ca", der, key)
}

// issue makes a key and a certificate signed by the authority: <name>.key and <name>.crt.
func (a *authority) issue(name string, template x509.Certificate) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := a.sign(&template, key.Public())
	if err != nil {
		return err
	}
	return a.write(name, der, key)
}

func (a *authority) sign(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-clockSkewAllowance)
	template.NotAfter = time.Now().AddDate(certificateYears, 0, 0)
	return x509.CreateCertificate(rand.Reader, template, a.certificate, key, a.key)
}

func (a *authority) write(name string, der []byte, key *ecdsa.PrivateKey) error {
	file := filepath.Join(a.folder, name)
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(file+".crt", block, 0o600); err != nil {
		return err
	}
	return writeKey(file+".key", key)
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// writeKey uses SEC 1: kube-apiserver reads no PKCS #8 file as an ECDSA ServiceAccount key.
func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
