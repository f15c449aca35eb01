export function gauge(name: string, help: string, value: number): Family {
  return { name, type: 'gauge', help, samples: [{ value }] }
}

export function counter(name: string, help: string, value: number): Family {
  return { name, type: 'counter', help, samples: [{ value }] }
}

/** A metric with its series. */
export interface Family {
  /** The name. It ends in `_total` for a counter, and in the unit if there is one. */
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly samples: readonly Sample[]
}

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
  /** The suffix, for a histogram only. */
  readonly suffix?: '_bucket' | '_sum' | '_count'
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/

/**
 * Returns metrics in the Prometheus text format 0.0.4, which with these names is also valid 1.0.0.
 *
 * @throws {RangeError} for an invalid name. Names are ours, but label values may come from anywhere
 */
export function toExposition(families: readonly Family[]): string {
  return families.map(toFamily).join('')
}

function toFamily({ name, type, help, samples }: Family): string {
  checkName(name)
  const lines = samples.map(
    ({ labels = {}, value, suffix = '' }) => `${name}${suffix}${toLabels(labels)} ${toNumber(value)}\n`,
  )
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function toLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    checkName(name)
    return `${name}="${escapeValue(value)}"`
  })
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

/** Replaces lone surrogates, which are not valid UTF-8. */
function escapeValue(value: string): string {
  return value.toWellFormed().replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function toNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  return String(value)
}

function checkName(name: string): void {
  if (!NAME.test(name)) throw new RangeError(`"${name}" is not the name of a metric or label`)
}
