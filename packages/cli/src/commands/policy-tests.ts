import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { type CatalogSnapshot, testPolicies } from '@toolgate/change'
import {
  type FileResults,
  type GatewayConfig,
  loadConfig,
  readConfig,
  readPolicyTests,
  type TestedClauseRow,
  toClauseRows,
  toRows,
} from '@toolgate/gateway'
import type { TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { describeMissed, toJunit, toTap } from '../policy-tests/results.ts'
import { readRecordedHits } from '../policy-tests/recorded-hits.ts'
import { count } from '../render.ts'
import { missingText } from './missing-records.ts'
import type { ServeDeps } from './serve.ts'
import { takeLiveSnapshot } from './snapshot.ts'
import { nextCommand } from '../next-command.ts'

export interface PolicyTestsOptions extends TargetOptions {
  readonly live?: boolean
  /** Reads from the running gateway which clauses real calls have reached. */
  readonly audit?: boolean
  /** With `audit`: the time of the first record, in wall-clock milliseconds. */
  readonly since: number
  readonly tap?: boolean
  readonly junit?: string | boolean
  readonly json?: boolean
}

const DEFAULT_CONFIG = 'toolgate.yaml'
const SUFFIX = '.test.yaml'

/** `toolgate test`: tests the policy of a configuration with files of tests. Starts nothing, unless `--live` asks for it. */
export async function policyTestsCommand(
  given: readonly string[],
  options: PolicyTestsOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ExitName> {
  const files = findFiles(given, options)
  const configs = new Map<string, GatewayConfig>()
  const config = (file: string) => {
    const known = configs.get(file) ?? loadConfig(file, { env: io.env, packagesFrom: [INSTALLED_FROM] })
    configs.set(file, known)
    return known
  }
  const catalog = options.live ? await snapshotOf(options.config ?? DEFAULT_CONFIG, io, start) : undefined
  const results: FileResults[] = []
  const warnings = new Set<string>()
  // All files are read before any test runs, because a test that cannot run must not look as if it had passed.
  const read = []
  for (const file of files) read.push(await readPolicyTests(file, { config, catalog, defaultConfig: options.config }))
  const tested = []
  for (const one of read) {
    const report = await testPolicies(one.options)
    tested.push({ of: one, report })
    results.push(toRows(one, report))
    for (const { path: at, text } of report.warnings) warnings.add(`${at}: ${text}`)
  }
  const failed = results.flatMap(({ tests }) => tests).filter(({ ok }) => !ok).length
  const recorded = options.audit ? await readRecordedHits(options, io) : undefined
  const missing = recorded?.missing
  if (missing) warnings.add(missingText(missing))
  print({ results, clauses: toClauseRows(tested, recorded?.hitsOf), missing, warnings: [...warnings] }, options, io)
  return failed === 0 ? 'ok' : 'no'
}

async function snapshotOf(file: string, io: Io, start: ServeDeps['start']): Promise<CatalogSnapshot> {
  return takeLiveSnapshot(await readConfig(file, { env: io.env, packagesFrom: [INSTALLED_FROM] }), start)
}

/** Returns the named files, the files of named folders, or those beside the configuration. */
function findFiles(given: readonly string[], options: PolicyTestsOptions): readonly string[] {
  const places = given.length === 0 ? [path.dirname(options.config ?? DEFAULT_CONFIG)] : given
  const files = places.flatMap((place) => {
    if (!existsSync(place)) throw new CliError('usage', `${printable(place)} cannot be read: there is no such file.`)
    if (!statSync(place).isDirectory()) return [place]
    const names = readdirSync(place).filter((name) => name.endsWith(SUFFIX))
    return names.toSorted().map((name) => path.join(place, name))
  })
  if (files.length > 0) return files
  throw new CliError('usage', `There are no tests: no file in ${printable(places.join(', '))} ends with ${SUFFIX}.`, {
    hint: `Write a first one with what the policy answers now: ${nextCommand('test --init', { config: options.config })}`,
  })
}

interface PrintedTests {
  readonly results: readonly FileResults[]
  readonly clauses: readonly TestedClauseRow[]
  readonly warnings: readonly string[]
  /** With `--audit`: the number of records that are missing or cannot be read. */
  readonly missing: number | undefined
}

function print(all: PrintedTests, { tap, junit, json }: PolicyTestsOptions, io: Io): void {
  const { results, clauses, warnings, missing } = all
  if (json) return printJson(io.stdout, { files: results, clauses, warnings, missing })
  if (tap) return void io.stdout.write(toTap(results))
  if (junit) return void io.stdout.write(toJunit(results))
  printForPeople(all, io)
}

function printForPeople({ results, clauses, warnings }: PrintedTests, io: Io): void {
  const paint = painter(io.stdout, io.env)
  for (const { file, tests } of results) {
    printLine(io.stdout, paint('bold', printable(file)))
    for (const { shows, ok, missed } of tests) {
      printLine(io.stdout, `  ${ok ? paint('green', 'ok  ') : paint('red', 'FAIL')}  ${printable(shows)}`)
      for (const row of missed) {
        const place = paint('cyan', `${printable(file)}:${row.line}:${row.column}:`)
        printLine(io.stdout, `        ${place} ${printable(describeMissed(row))}`)
        for (const reason of row.because) printLine(io.stdout, paint('dim', `          ${printable(reason)}`))
      }
    }
  }
  const all = results.flatMap(({ tests }) => tests)
  const failed = all.filter(({ ok }) => !ok).length
  const summary = failed === 0 ? paint('green', 'all passed') : paint('red', `${failed} failed`)
  printLine(io.stdout, `${count(all.length, 'test')}, ${summary}`)
  printUnreached(clauses, io)
  for (const warning of warnings)
    printLine(io.stderr, `${painter(io.stderr, io.env)('yellow', 'warn')}  ${printable(warning)}`)
}

/** Prints the clauses that no test reaches, with the number of real calls that matched each, if known. */
function printUnreached(clauses: readonly TestedClauseRow[], io: Io): void {
  const paint = painter(io.stdout, io.env)
  const unreached = clauses.filter(({ hits }) => hits === 0)
  const reached = unreached.filter(({ recorded = 0 }) => recorded > 0)
  const never = unreached.filter(({ recorded = 0 }) => recorded === 0)
  const isAudited = unreached.some(({ recorded }) => recorded !== undefined)
  const list = (title: string, rows: readonly TestedClauseRow[]) => {
    if (rows.length > 0) printLine(io.stdout, paint('yellow', title))
    for (const { file, line, column, clause, match, recorded = 0 } of rows) {
      const place = paint('cyan', `${printable(file)}:${line}:${column}:`)
      const calls = recorded > 0 ? `  ${count(recorded, 'call')}` : ''
      printLine(io.stdout, `  ${place} ${printable(clause)} ${printable(match)}${calls}`)
    }
  }
  list('No test reaches, but real calls do:', reached)
  list(isAudited ? 'Neither a test nor a real call reaches:' : 'No test reaches:', never)
}
