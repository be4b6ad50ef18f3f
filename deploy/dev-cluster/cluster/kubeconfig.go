package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func kubeconfigFile(client string) string {
	return client + ".kubeconfig"
}

// writeKubeconfig writes <client>.kubeconfig with everything inline, and replaces an older one
// at once: a reader never sees half a file.
func writeKubeconfig(client, url string) error {
	config := clientcmdapi.NewConfig()
	cluster, user := clientcmdapi.NewCluster(), clientcmdapi.NewAuthInfo()
	cluster.Server = url
	for file, target := range map[string]*[]byte{
		caCertificateFile:                       &cluster.CertificateAuthorityData,
		filepath.Join(pkiFolder, client+".crt"): &user.ClientCertificateData,
		filepath.Join(pkiFolder, client+".key"): &user.ClientKeyData,
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		*target = content
	}
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo = "dev-cluster", client
	config.Clusters["dev-cluster"] = cluster
	config.AuthInfos[client] = user
	config.Contexts["dev-cluster"] = context
	config.CurrentContext = "dev-cluster"

	temporary := fmt.Sprintf("%s.%d.tmp", kubeconfigFile(client), os.Getpid())
	if err := clientcmd.WriteToFile(*config, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, kubeconfigFile(client))
}

// clientConfig is how this process itself calls the API server, as one of `clients`.
func clientConfig(client, url string) *rest.Config {
	return &rest.Config{
		Host: url,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   caCertificateFile,
			CertFile: filepath.Join(pkiFolder, client+".crt"),
			KeyFile:  filepath.Join(pkiFolder, client+".key"),
		},
	}
}
