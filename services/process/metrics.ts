/**
 * The one file that knows prom-client. Metrics exist at zero from the start, so that a rate over the
 * first event is not lost: a metric says the values that its labels are known to take, and each
 * combination of them is written out at once.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/** What a metric is. Names end in their unit, counters in _total. */
export interface MetricSpec<Label extends string> {
  readonly name: string;
  readonly help: string;
  /** Known values by label; an empty list: not known in advance, nothing is written at zero. */
  readonly labels: Readonly<Record<Label, readonly string[]>>;
}

export interface HistogramSpec<Label extends string> extends MetricSpec<Label> {
  /** Upper bounds in the metric's unit, rising. */
  readonly buckets: readonly number[];
}

export type LabelValues<Label extends string> = Readonly<Record<Label, string>>;

/** Only rises. */
export interface CounterMetric<Label extends string> {
  add(labels: LabelValues<Label>, by?: number): void;
}

/** Rises and falls. */
export interface GaugeMetric<Label extends string> {
  set(labels: LabelValues<Label>, value: number): void;
  /** Forgets one series, when what it speaks of is gone. */
  remove(labels: LabelValues<Label>): void;
}

/** Counts by size. */
export interface HistogramMetric<Label extends string> {
  observe(labels: LabelValues<Label>, value: number): void;
}

/** The metrics of one process. */
export interface Metrics {
  counter<Label extends string>(spec: MetricSpec<Label>): CounterMetric<Label>;
  gauge<Label extends string>(spec: MetricSpec<Label>): GaugeMetric<Label>;
  histogram<Label extends string>(spec: HistogramSpec<Label>): HistogramMetric<Label>;
  /** Calls `read` before each exposition, for what is cheaper to look at than to follow. */
  onScrape(read: () => void): void;
  /** Prometheus text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** A fresh registry with the process's and Node's own metrics in it. Two never meet. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // Gauges whose names end in _total: promtool rightly refuses them.
  for (const metric of registry.getMetricsAsArray()) {
    if (/^nodejs_active_.*_total$/u.test(metric.name)) registry.removeSingleMetric(metric.name);
  }
  return new PromMetrics(registry);
}

class PromMetrics implements Metrics {
  readonly #registry: Registry;
  readonly #readers: (() => void)[] = [];

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  counter<Label extends string>(spec: MetricSpec<Label>): CounterMetric<Label> {
    const counter = new Counter(this.#configuration(spec));
    for (const labels of combinations(spec)) counter.inc(labels, 0);
    return { add: (labels, by = 1) => counter.inc({ ...labels }, by) };
  }

  gauge<Label extends string>(spec: MetricSpec<Label>): GaugeMetric<Label> {
    const gauge = new Gauge(this.#configuration(spec));
    for (const labels of combinations(spec)) gauge.set(labels, 0);
    return {
      set: (labels, value) => gauge.set({ ...labels }, value),
      remove: (labels) => gauge.remove({ ...labels }),
    };
  }

  histogram<Label extends string>(spec: HistogramSpec<Label>): HistogramMetric<Label> {
    const histogram = new Histogram({ ...this.#configuration(spec), buckets: [...spec.buckets] });
    for (const labels of combinations(spec)) histogram.zero(labels);
    return { observe: (labels, value) => histogram.observe({ ...labels }, value) };
  }

  onScrape(read: () => void): void {
    this.#readers.push(read);
  }

  text(): Promise<string> {
    for (const read of this.#readers) read();
    return this.#registry.metrics();
  }

  #configuration<Label extends string>(spec: MetricSpec<Label>) {
    const { name, help } = spec;
    return { name, help, labelNames: labelNames(spec), registers: [this.#registry] };
  }
}

function labelNames<Label extends string>(spec: MetricSpec<Label>): Label[] {
  // Object.keys forgets that the record's keys are its type parameter.
  return Object.keys(spec.labels) as Label[];
}

/** Every combination of known label values; none when some label's values are not known. */
function combinations<Label extends string>(spec: MetricSpec<Label>): Record<Label, string>[] {
  let rows: Record<string, string>[] = [{}];
  for (const name of labelNames(spec)) {
    rows = rows.flatMap((row) => spec.labels[name].map((value) => ({ ...row, [name]: value })));
  }
  return rows;
}
