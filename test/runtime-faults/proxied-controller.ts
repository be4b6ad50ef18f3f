/** The controller's own program, with a fault proxy of its own between it and the API server. */
import assert from "node:assert/strict";

import { eventually } from "../../deploy/dev-cluster/eventually.ts";
import { FaultProxy } from "../fault-proxy/fault-proxy.ts";
import type { FaultRule } from "../fault-proxy/fault-rule.ts";
import { httpGet, metricValue } from "../support/http-get.ts";
import { startProgram } from "../support/program.ts";
import type { Program } from "../support/program.ts";
import type { Stack } from "../support/stack.ts";

const readyTimeoutMs = 20_000;

export class ProxiedController {
  readonly proxy: FaultProxy;
  readonly program: Program;

  constructor(proxy: FaultProxy, program: Program) {
    this.proxy = proxy;
    this.program = program;
  }

  /** Ready when it answers so. @param rules from before its first request on */
  static async start(
    stack: Stack,
    flags: readonly string[] = [],
    rules: readonly FaultRule[] = [],
  ): Promise<ProxiedController> {
    const account = { namespace: "dhp-system", name: "dhp-controller" };
    const proxy = await FaultProxy.start(await stack.cluster.serviceAccountKubeconfig(account));
    proxy.setRules(rules);
    const own = ["--kubeconfig", proxy.kubeconfig, "--fleet=local", "--admin-listen=127.0.0.1:0"];
    try {
      const program = await startProgram("controller/main.ts", [...own, ...flags]);
      const controller = new ProxiedController(proxy, program);
      await eventually(() => controller.#expectReady(), readyTimeoutMs);
      return controller;
    } catch (error) {
      await proxy.stop();
      throw error;
    }
  }

  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const { text } = await httpGet(this.program.ports.adminPort, "/metrics");
    return metricValue(text, name, labels);
  }

  async isLeading(): Promise<boolean> {
    return (await this.metric("leader_election_master_status")) === 1;
  }

  async stop(): Promise<void> {
    this.proxy.setRules([]);
    this.proxy.resume();
    await this.program.stop();
    await this.proxy.stop();
  }

  async #expectReady(): Promise<void> {
    assert.equal((await httpGet(this.program.ports.adminPort, "/readyz")).status, 200);
  }
}
