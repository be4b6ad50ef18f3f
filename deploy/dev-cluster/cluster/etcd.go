package main

import (
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const etcdStartTimeout = 30 * time.Second

// Sockets in the data folder, which is the working directory: two clusters never share a port.
const (
	etcdClientSocket = "unix://etcd-client.sock:0"
	etcdPeerSocket   = "unix://etcd-peer.sock:0"
)

// startEtcd returns once etcd serves. Nothing is synced to the disk: a killed process loses
// nothing (the kernel has its writes), only a crashed machine would.
func startEtcd() (*embed.Etcd, error) {
	client, err := url.Parse(etcdClientSocket)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(etcdPeerSocket)
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir = "etcd"
	config.UnsafeNoFsync = true
	config.LogLevel = "error"
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = []url.URL{*client}
	config.ListenPeerUrls = []url.URL{*peer}
	config.AdvertisePeerUrls = []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("cannot start etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		etcd.Close()
		return nil, fmt.Errorf("etcd stopped while starting: %w", err)
	case <-time.After(etcdStartTimeout):
		etcd.Close()
		return nil, fmt.Errorf("etcd was not ready after %s", etcdStartTimeout)
	}
}

// stopEtcd closes the log and the database. It does not wait for etcd's clients, as Close does
// for up to 10 s: the only client lives in this process and keeps its connections to the end.
func stopEtcd(etcd *embed.Etcd) {
	etcd.Server.HardStop()
}
