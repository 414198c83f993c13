// A Kubernetes control plane in one executable. Which of its programs runs is said by the name that it was started by
// (a link called kubectl) or else by its first argument. One build links what six separate ones would link six times.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	nodestages "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podstages "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// Functions, since building a command registers global flags that another one would trip over.
var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { component(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { component(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { component(scheduler.NewSchedulerCommand()) },
	"kubectl":                 runKubectl,
	"kwok":                    runKwok,
	"kwok-stages":             printKwokStages,
}

func main() {
	if run, found := programs[filepath.Base(os.Args[0])]; found {
		run()
		return
	}
	if len(os.Args) > 1 {
		if run, found := programs[os.Args[1]]; found {
			os.Args = os.Args[1:]
			run()
			return
		}
	}
	names := slices.Sorted(maps.Keys(programs))
	fmt.Fprintf(os.Stderr, "usage: control-plane %s [ARGUMENT...]\n", strings.Join(names, "|"))
	os.Exit(2)
}

func component(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}

func runKwok() {
	// The Kubernetes components have put a --version of theirs among the global flags, which kwok's own would meet.
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err == nil {
		err = execute(ctx, flags)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, flags *pflag.FlagSet) error {
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}

// kwok does nothing without stages, and keeps its default ones where only Go can read them.
func printKwokStages() {
	fmt.Println(strings.Join([]string{
		nodestages.DefaultNodeInit, podstages.DefaultPodReady, podstages.DefaultPodComplete, podstages.DefaultPodDelete,
	}, "\n---\n"))
}
