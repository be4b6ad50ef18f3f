package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// controllers are those that tests of an operator can notice: namespaces that end, owner
// references that are collected, roles "view" and "edit" that are filled from others, Deployments
// that make pods (which nothing runs here).
const controllers = "namespace-controller,garbage-collector-controller,deployment-controller," +
	"replicaset-controller,serviceaccount-controller,endpointslice-controller," +
	"clusterrole-aggregation-controller"

// runControllerManager serves until SIGTERM or SIGINT. It needs no port of its own.
func runControllerManager(opts options) error {
	kubeconfig := kubeconfigFile("controller-manager")
	if _, err := os.Stat(kubeconfig); err != nil {
		return fmt.Errorf("no running API server has used the folder %q: %w", opts.folder, err)
	}
	command := app.NewControllerManagerCommand()
	command.SetArgs([]string{
		"--kubeconfig=" + kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + serviceAccountKey,
		"--root-ca-file=" + caCertificateFile,
		"--controllers=" + controllers,
	})
	os.Exit(cli.Run(command))
	return nil
}
