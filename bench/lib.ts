/** One thing to measure. `run` does it `count` times; the loop is its own, so that nothing is added to the figure. */
export interface Case {
  readonly name: string
  readonly run: (count: number) => void | Promise<void>
  /** In microseconds, or in times the floor. */
  readonly budget?: string
}

export interface Figure {
  readonly name: string
  readonly budget: string
  /** Median over the rounds, in microseconds of CPU time for one operation. */
  readonly us: number
  readonly lowUs: number
  readonly highUs: number
}

export interface MeasureOptions {
  /** Default 9. */
  readonly rounds?: number
  /** How much CPU time a round of one case takes at least. Default 40. */
  readonly roundMs?: number
}

/**
 * Measures several cases in turn, round by round, so that a noisy moment falls on all of them.
 *
 * CPU time, not wall time: another process on the machine makes a round longer, but not dearer.
 */
export async function measure(
  cases: readonly Case[],
  { rounds: roundCount = 9, roundMs = 40 }: MeasureOptions = {},
): Promise<readonly Figure[]> {
  const counts: number[] = []
  for (const each of cases) counts.push(await countFor(each, roundMs))
  const rounds: number[][] = cases.map(() => [])
  for (let round = 0; round < roundCount; round++) {
    for (const [i, each] of cases.entries()) {
      globalThis.gc?.()
      const count = counts[i] ?? 1
      rounds[i]?.push((await cpuOf(each, count)) / count)
    }
  }
  return cases.map(({ name, budget = '' }, i) => {
    const sorted = (rounds[i] ?? []).toSorted((a, b) => a - b)
    return { name, budget, us: median(sorted), lowUs: sorted[0] ?? Number.NaN, highUs: sorted.at(-1) ?? Number.NaN }
  })
}

/** Gives how often a case fits in a round. What it does the first time, such as loading and compiling, does not count. */
async function countFor(each: Case, roundMs: number): Promise<number> {
  await each.run(1)
  await each.run(100)
  let count = 1
  for (;;) {
    const us = await cpuOf(each, count)
    if (us >= roundMs * 1000) return count
    count = us < 1000 ? count * 10 : Math.ceil((count * roundMs * 1100) / us)
  }
}

async function cpuOf(each: Case, count: number): Promise<number> {
  const before = process.cpuUsage()
  await each.run(count)
  const { user, system } = process.cpuUsage(before)
  return user + system
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** Prints figures with their ratio to the one named `floor`. */
export function printFigures(title: string, figures: readonly Figure[], floor: string): void {
  const floorUs = figures.find(({ name }) => name === floor)?.us ?? Number.NaN
  printTable(
    title,
    ['what', 'µs CPU', 'low - high', `× ${floor}`, 'budget'],
    figures.map(({ name, us, lowUs, highUs, budget }) => [
      name,
      digits(us),
      `${digits(lowUs)} - ${digits(highUs)}`,
      digits(us / floorUs),
      budget,
    ]),
  )
}

/** Prints a table as Markdown, the numbers to the right. */
export function printTable(title: string, head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((cell, i) =>
    Math.max(3, ...[cell, ...rows.map((row) => row[i] ?? '')].map((text) => text.length)),
  )
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' | ')} |`
  const rule = `|${widths.map((width, i) => (i === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  console.log(`\n## ${title}\n\n${[line(head), rule, ...rows.map(line)].join('\n')}`)
}

export function digits(value: number): string {
  if (!Number.isFinite(value)) return '-'
  return value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toFixed(3)
}

/** Gives the heap in use after what nobody holds is collected. What is weakly held lives to the end of its turn, so each collection has a turn of its own. */
export async function heapMb(): Promise<number> {
  if (!globalThis.gc) throw new Error('run with --expose-gc')
  for (let i = 0; i < 4; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    globalThis.gc()
  }
  return process.memoryUsage().heapUsed / 1e6
}
