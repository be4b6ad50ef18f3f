import { get } from "node:http";

const timeoutMs = 5_000;

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** GET of a loopback port: metrics, health. */
export function httpGet(port: number, path: string): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const sent = get({ host: "127.0.0.1", port, path, timeout: timeoutMs }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error(`no answer of ${path} in ${timeoutMs} ms`)));
    sent.on("error", reject);
  });
}

/** The sum of a metric's samples whose labels include those given; 0 when there is none. */
export function metricValue(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => wanted.every((label) => line.includes(label)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
