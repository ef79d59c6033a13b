package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthproject/berth/config/migrate"
	"github.com/berthproject/berth/internal/term"
)

// This file is berth migrate: values of the chart for who runs another program so far.

func migrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Print values of Berth's chart in place of another program's"}
	cmd.AddCommand(migrateAutoscalerCommand())
	return cmd
}

func migrateAutoscalerCommand() *cobra.Command {
	o := migrate.Options{}
	cmd := &cobra.Command{
		Use:   "cluster-autoscaler [-- FLAGS]",
		Short: "Print values of Berth's chart for what Cluster Autoscaler is started with",
		Long: `Cluster-autoscaler reads values of Cluster Autoscaler's chart, a manifest with its
Deployment, or its flags, and prints values of Berth's chart. Comments say what becomes
of each setting: kept, changed, for the server of the provider, without effect, or
refused, with the reason. The exit code is 1 if anything is refused.`,
		Example: `  berth migrate cluster-autoscaler --file values.yaml > berth.yaml
  kubectl get deployment cluster-autoscaler --namespace kube-system -o yaml | berth migrate cluster-autoscaler --file -
  berth migrate cluster-autoscaler -- --cloud-provider=clusterapi --expander=least-waste`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := newRunFlags()
			o.Stdin, o.Args, o.Flags, o.Validate = cmd.InOrStdin(), args, pflag.NewFlagSet("run", pflag.ContinueOnError), f.scale.Validate
			f.register(o.Flags)
			r, err := migrate.ClusterAutoscaler(o)
			if err != nil {
				return term.Usage(err)
			}
			if err := migrate.Print(cmd.OutOrStdout(), r); err != nil {
				return err
			}
			if n := r.Refusals(); n > 0 {
				return fmt.Errorf("%d setting(s) are refused; the comments say why", n)
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&o.Files, "file", "f", nil, "values of Cluster Autoscaler's chart or a manifest with its Deployment, - for stdin; may be repeated")
	cmd.Flags().BoolVar(&o.Scheduler, "replace-scheduler", false, "also take the place of kube-scheduler (default: only of Cluster Autoscaler, --mode=autoscaler)")
	return cmd
}
