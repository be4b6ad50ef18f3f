import { systemClock } from "../../services/process/clock.ts";
import { silentLog } from "../../services/process/log.ts";
import { Connection } from "./connection.ts";
import type { ConnectionOptions } from "./connection.ts";
import { kubeConfigFile } from "./kube-config.ts";

/** For tests: a real connection that counts what it does. */
export class CountingConnection extends Connection {
  readonly counts: { readonly codes: string[]; handshakes: number };

  constructor(kubeconfig: string, options: Partial<ConnectionOptions> = {}) {
    const counts = { codes: new Array<string>(), handshakes: 0 };
    super({
      source: kubeConfigFile(kubeconfig),
      clock: systemClock,
      log: silentLog,
      metrics: {
        onRequest: ({ code }) => counts.codes.push(code),
        onHandshake: () => (counts.handshakes += 1),
      },
      userAgent: "test",
      ...options,
    });
    this.counts = counts;
  }
}
