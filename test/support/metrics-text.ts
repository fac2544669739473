interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface Family {
  help: string;
  type: string;
  samples: Sample[];
}

const HELP = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/;
const TYPE = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary)$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9][0-9.e+-]*|[+-]Inf|NaN)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y;

/** Parses the text format of Prometheus, and throws at the first invalid line. */
export function parseMetrics(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let family: Family | undefined;
  let name = '';
  if (!text.endsWith('\n')) throw new Error('the text must end with a line break');
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const help = HELP.exec(line);
    const type = TYPE.exec(line);
    if (help !== null) {
      [, name = ''] = help;
      if (families.has(name)) throw new Error(`duplicate metric: ${name}`);
      family = { help: help[2] ?? '', type: '', samples: [] };
      families.set(name, family);
    } else if (type !== null) {
      if (type[1] !== name || family === undefined) throw new Error(`TYPE without HELP: ${line}`);
      family.type = type[2] ?? '';
    } else {
      const sample = readSample(line);
      if (family === undefined || !belongs(sample.name, name, family.type))
        throw new Error(`a sample of another metric: ${line}`);
      const key = line.slice(0, line.lastIndexOf(' '));
      if (seen.has(key)) throw new Error(`duplicate sample: ${line}`);
      seen.add(key);
      family.samples.push(sample);
    }
  }
  for (const [of, { type, samples }] of families) if (type === 'histogram') checkHistogram(of, samples);
  return families;
}

function readSample(line: string): Sample {
  const [, name, labels, value] = SAMPLE.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Error(`invalid sample: ${line}`);
  return { name, labels: readLabels(labels ?? ''), value: Number(value.replace('Inf', 'Infinity')) };
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name, value] = LABEL.exec(text) ?? [];
    if (name === undefined || value === undefined) throw new Error(`invalid labels: ${text}`);
    labels[name] = value;
  }
  return labels;
}

function belongs(sample: string, name: string, type: string): boolean {
  if (type === 'histogram') return [`${name}_bucket`, `${name}_sum`, `${name}_count`].includes(sample);
  return type !== '' && sample === name;
}

/** In each series the buckets rise, and the last one, +Inf, equals the count. */
function checkHistogram(name: string, samples: readonly Sample[]): void {
  const series = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { le: _, ...rest } = sample.labels;
    const key = JSON.stringify(rest);
    series.set(key, [...(series.get(key) ?? []), sample]);
  }
  for (const [key, of] of series) {
    const buckets = of
      .filter((one) => one.name.endsWith('_bucket'))
      .map(({ labels, value }) => [Number(labels['le']?.replace('Inf', 'Infinity')), value] as const);
    const count = of.find((one) => one.name.endsWith('_count'))?.value;
    const sum = of.find((one) => one.name.endsWith('_sum'))?.value;
    for (const [index, [bound, value]] of buckets.entries()) {
      const [before, less] = buckets[index - 1] ?? [-Infinity, 0];
      if (!(bound > before) || value < less) throw new Error(`${name}${key}: buckets do not rise`);
    }
    const [last, all] = buckets.at(-1) ?? [];
    if (last !== Infinity || all !== count || sum === undefined)
      throw new Error(`${name}${key}: +Inf is not the count`);
  }
}
