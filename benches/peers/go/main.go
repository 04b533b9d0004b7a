// Does with redsync or etcd, which its argument names, what each line of its input asks for, and
// answers with one line. benches/peers/program.rs has the list of requests.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

func main() {
	library, name, module := os.Args[1], "redsync", "redsync/v4"
	if library == "etcd" {
		name, module = "etcd client", "etcd/client/v3"
	}
	release := strings.TrimPrefix(runtime.Version(), "go")
	fmt.Printf("%s %s (Go %s)\n", name, version(module), release)
	var locks locks
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		words := strings.Fields(requests.Text())
		if words[0] != "connect" {
			fmt.Println(answer(locks, words))
			continue
		}
		if locks != nil {
			locks.close()
		}
		var err error
		if locks, err = connect(library, words[1:]); err != nil {
			fmt.Printf("error %v\n", err)
			os.Exit(1)
		}
		fmt.Println(result{})
	}
}

func answer(locks locks, words []string) fmt.Stringer {
	switch words[0] {
	case "cycles":
		n := numbers(words[1:])
		return cycles(locks, n[0], milliseconds(n[1]))
	case "handoff":
		n := numbers(words[2:])
		return handoff(locks, n[0], n[1], milliseconds(n[2]))
	case "crowd":
		n := numbers(words[2:])
		return crowd(locks, n[0], n[1], milliseconds(n[2]))
	}
	panic("no such request: " + words[0])
}

func milliseconds(count int) time.Duration {
	return time.Duration(count) * time.Millisecond
}

func numbers(words []string) []int {
	var found []int
	for _, word := range words {
		number, err := strconv.Atoi(word)
		if err != nil {
			panic(err)
		}
		found = append(found, number)
	}
	return found
}

// version is that of the module whose path ends so.
func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, one := range info.Deps {
		if strings.HasSuffix(one.Path, module) {
			return strings.TrimPrefix(one.Version, "v")
		}
	}
	return "?"
}
