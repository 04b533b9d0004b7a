package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	lease = 30 * time.Second
	// redsync gives up after 32 tries; who waits here does so until told otherwise.
	tries = 1 << 30
)

// locks are those of one of the two libraries, with default settings where nothing else is said.
type locks interface {
	// have connects so many clients.
	have(clients int) error
	// lock waits for a lock of this client, and returns what gives it back.
	lock(ctx context.Context, client int, name string) (func() error, error)
	close()
}

func connect(name string, servers []string) (locks, error) {
	var locks locks
	switch name {
	case "redsync":
		locks = &redsyncLocks{servers: servers}
	case "etcd":
		locks = &etcdLocks{servers: servers}
	default:
		return nil, fmt.Errorf("there is no %s", name)
	}
	return locks, locks.have(1)
}

type redsyncLocks struct {
	servers     []string
	clients     []*redsync.Redsync
	connections []*redis.Client
}

func (l *redsyncLocks) have(clients int) error {
	for len(l.clients) < clients {
		var pools []pool.Pool
		for _, server := range l.servers {
			options, err := redis.ParseURL(server)
			if err != nil {
				return err
			}
			client := redis.NewClient(options)
			l.connections = append(l.connections, client)
			pools = append(pools, goredis.NewPool(client))
		}
		l.clients = append(l.clients, redsync.New(pools...))
	}
	return nil
}

func (l *redsyncLocks) lock(ctx context.Context, client int, name string) (func() error, error) {
	mutex := l.clients[client].NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(tries))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		_, err := mutex.Unlock()
		return err
	}, nil
}

func (l *redsyncLocks) close() {
	for _, connection := range l.connections {
		connection.Close()
	}
}

type etcdLocks struct {
	servers  []string
	clients  []*etcd.Client
	sessions []*concurrency.Session
}

func (l *etcdLocks) have(clients int) error {
	for len(l.sessions) < clients {
		client, err := etcd.New(etcd.Config{Endpoints: l.servers, DialTimeout: lease})
		if err != nil {
			return err
		}
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(lease.Seconds())))
		if err != nil {
			return err
		}
		l.clients = append(l.clients, client)
		l.sessions = append(l.sessions, session)
	}
	return nil
}

func (l *etcdLocks) lock(ctx context.Context, client int, name string) (func() error, error) {
	mutex := concurrency.NewMutex(l.sessions[client], "/"+name)
	if err := mutex.Lock(ctx); err != nil {
		return nil, err
	}
	return func() error { return mutex.Unlock(context.Background()) }, nil
}

func (l *etcdLocks) close() {
	for at, session := range l.sessions {
		session.Close()
		l.clients[at].Close()
	}
}
