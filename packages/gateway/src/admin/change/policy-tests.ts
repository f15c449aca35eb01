import path from 'node:path'
import { type Caller, ConfigError, defineCaller } from '@toolgate/core'
import {
  type CatalogSnapshot,
  checkPolicyTests,
  type PolicyTest,
  type PolicyTestOptions,
  type TestedRules,
} from '@toolgate/change'
import { callerKey } from '@toolgate/core/internal'
import { didYouMean, messageOf } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import type { Group } from '@toolgate/core/groups'
import type * as z from 'zod'
import { serverGroupName, toApps } from '../../servers/catalog/groups.ts'
import type { GatewayConfig } from '../../config/config.ts'
import type { ConfigPlace } from '../../model/config-place.ts'
import { ConfigFileError, type ConfigPath } from '../../config/problems.ts'
import { checkShape } from '../../config/reading.ts'
import type { Filled } from '../../config/fill.ts'
import { parseSource, type Source } from '../../config/source.ts'
import { readCatalogFile, readSmallFile } from './catalog-file.ts'
import { checkTokens } from '../../config/check-tokens.ts'
import { configuredItems } from './snapshot-items.ts'
import { fileSchema } from './test-schema.ts'

/** A file of tests, with the configuration and the catalog to test. */
export interface PolicyTestFile {
  readonly file: string
  readonly options: PolicyTestOptions
  /** Returns where a part of the tests is written: `[2, 'expect', 'call']`. */
  placeOf(path: ConfigPath): ConfigPlace
  /** Returns where a clause of the configuration is written, such as `policy[0].deny[1]`. */
  clausePlace(path: string): ConfigPlace | undefined
}

export interface PolicyTestFileOptions {
  /** Reads the configuration at a path. Called only if the test file itself is valid. */
  readonly config: (file: string) => GatewayConfig
  /** The configuration for files that do not name one. Default: `toolgate.yaml` beside the file. */
  readonly defaultConfig?: string | undefined
  /** A catalog that replaces the one in the file, such as that of running servers. */
  readonly catalog?: CatalogSnapshot | undefined
}

/**
 * Reads a file of policy tests, with the configuration and the catalog that it names. Starts nothing.
 *
 * @throws {ConfigFileError} with every unknown key and name in the file, each with its line and column
 */
export async function readPolicyTests(file: string, how: PolicyTestFileOptions): Promise<PolicyTestFile> {
  return parsePolicyTests(file, readSmallFile(file, MAX_FILE_BYTES), how)
}

/**
 * Parses a text of policy tests that a client has sent. Unlike a file of {@link readPolicyTests}, it must not name
 * other files.
 *
 * @throws {ConfigFileError} with every unknown key and name, each with its line and column
 */
export async function parseSentTests(
  text: string,
  how: Required<Pick<PolicyTestFileOptions, 'config' | 'catalog'>>,
): Promise<PolicyTestFile> {
  checkTokens(text, SENT)
  const source = parseSource(SENT, text)
  const head = readHead(source)
  for (const key of ['config', 'catalog'] as const)
    if (head[key] !== undefined)
      source.report([key], 'names a file, and the gateway reads none: it tests its own catalog', { atKey: true })
  stopAtProblems(source)
  return parsePolicyTests(SENT, text, how)
}

/** Replaces the file's name in messages. */
const SENT = 'tests'

async function parsePolicyTests(file: string, text: string, how: PolicyTestFileOptions): Promise<PolicyTestFile> {
  const folder = path.dirname(file)
  const head = readHead(parseSource(file, text))
  const config = how.config(
    head.config === undefined
      ? (how.defaultConfig ?? path.join(folder, 'toolgate.yaml'))
      : path.resolve(folder, head.config),
  )
  // Rules about paths contain the folder of the configuration, so inputs must contain it too.
  const source = parseSource(file, text, (written) => fillConfigDir(written, path.dirname(config.file)))
  const { callers, tests } = readHead(source)
  const catalog = how.catalog ?? readCatalog(source, head, folder)
  const options: PolicyTestOptions = {
    ...testedRules(config),
    ...itemsFor(source, catalog, config),
    callers: new Map([...callersOf(config), ...readCallers(source, callers ?? {})]),
    tests: tests as readonly PolicyTest[],
  }
  stopAtProblems(source)
  for (const { path: at, message, isKey } of await checkPolicyTests(options))
    source.report(['tests', ...at], message, { atKey: isKey })
  stopAtProblems(source)
  return {
    file,
    options,
    clausePlace: (at) => config.places?.get(at),
    placeOf: (at) => placeIn(source, ['tests', ...at]) ?? { file, line: 1, column: 1 },
  }
}

/** @throws {ConfigFileError} for another shape */
function readHead(source: Source): TestFileHead {
  const head = source.root && checkShape(source, [], fileSchema)
  stopAtProblems(source)
  return head as TestFileHead
}

/** Fills only `${configDir}`, so that a test is the same wherever it runs. */
function fillConfigDir(text: string, folder: string): Filled {
  const filled = text.replaceAll('${configDir}', folder)
  return { text: filled, changed: filled !== text, isUnread: false, problems: [] }
}

/** Returns the place of a value, or of the nearest enclosing value. */
function placeIn(source: Source, at: ConfigPath): ConfigPlace | undefined {
  for (let length = at.length; length > 0; length--) {
    const place = source.placeOf(at.slice(0, length))
    if (place) return place
  }
  return undefined
}

const MAX_FILE_BYTES = 4 * 1024 * 1024

function stopAtProblems({ problems }: Source): void {
  if (problems.length > 0)
    throw new ConfigFileError(problems.toSorted((a, b) => a.line - b.line || a.column - b.column))
}

type TestFileHead = z.infer<typeof fileSchema>

/** Returns the snapshot that a file names, with the tools that the file defines itself. */
function readCatalog(source: Source, { catalog, tools }: TestFileHead, folder: string): CatalogSnapshot {
  const items = (tools ?? []).map(toItem)
  if (catalog === undefined) {
    if (!tools) source.report([], 'has neither "catalog", a file that "toolgate snapshot" has written, nor "tools"')
    return { version: 1, items }
  }
  try {
    const written = new Set(items.map(({ id }) => id))
    const recorded = readCatalogFile(path.resolve(folder, catalog)).items.filter(({ id }) => !written.has(id))
    return { version: 1, items: [...recorded, ...items] }
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    for (const { message } of error.problems) source.report(['catalog'], message)
    throw new ConfigFileError(source.problems)
  }
}

/** Returns a tool that a test file defines, by its id alone or with more fields. */
function toItem(written: string | { readonly id: string }): CatalogSnapshot['items'][number] {
  const { id, ...more } = typeof written === 'string' ? { id: written } : written
  const [first = '', ...rest] = id.split(':')
  if (rest.length === 0) return { name: id, ...more, id }
  const [kind, namespace = '', ...name] =
    first === 'resource' || first === 'prompt' ? [first, ...rest] : [undefined, first, ...rest]
  const called = name.join(':')
  if (kind === undefined) return { namespace, name: called, ...more, id }
  if (kind === 'prompt') return { kind, namespace, name: called, ...more, id }
  return { kind: called.includes('{') ? 'template' : 'resource', namespace, name: called, uri: called, ...more, id }
}

function itemsFor(
  source: Source,
  catalog: CatalogSnapshot,
  { servers }: GatewayConfig,
): Pick<PolicyTestOptions, 'catalog' | 'findUnlisted'> {
  const names = servers.map(({ name }) => name)
  try {
    const { items, findUnlisted } = configuredItems(catalog, servers)
    for (const [i, node] of (source.get(['tools'])?.items ?? []).entries()) {
      const written = isObject(node.value) ? String(node.value['id']) : String(node.value)
      const { namespace = '' } = toItem(written)
      if (!names.includes(namespace))
        source.report(
          ['tools', i],
          `the configuration has no server ${JSON.stringify(namespace)}${didYouMean(namespace, names)}`,
        )
    }
    return { catalog: items, findUnlisted }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const [, index] = /items\[(\d+)\]/.exec(error.path) ?? []
    const own = (source.get(['tools'])?.items?.length ?? 0) - (catalog.items.length - Number(index ?? 0))
    source.report(own >= 0 ? ['tools', own] : ['catalog'], error.message)
    return { catalog: [] }
  }
}

/**
 * Returns the rules of a configuration. Each server is a group, such as `server:files`, which a test may declare down.
 */
function testedRules({
  policy,
  groups,
  apps,
  aliases,
  limits,
  labels,
  history,
  oauth,
  servers,
}: GatewayConfig): TestedRules {
  return {
    policy,
    limits,
    groups: new Map<string, Group>([
      ...groups.map(({ name, availableWhen: _, ...group }): [string, Group] => [name, group]),
      ...servers.map(({ name }): [string, Group] => [
        serverGroupName(name),
        { tools: [`${name}:*`], visibility: 'conditional' },
      ]),
    ]),
    apps: toApps(apps),
    ...(aliases && { aliases }),
    ...(labels && { labels }),
    ...(history && { history }),
    ...(oauth && { stepUp: oauth.stepUp }),
  }
}

/** Returns the callers of a configuration by the names that tests use, such as `vera`, or `vera of acme`. */
function callersOf({ callers }: GatewayConfig): ReadonlyMap<string, Caller> {
  const named = callers.flatMap(({ caller }) => {
    const { user, agent, tenant } = caller
    const name = user ?? agent
    if (name === undefined) return []
    return [[name, caller] as const, ...(tenant === undefined ? [] : [[`${name} of ${tenant}`, caller] as const])]
  })
  const byName = Map.groupBy(named, ([name]) => name)
  // A name with several callers is left out, as the test would use only one of them.
  return new Map(
    [...byName].flatMap(([name, same]) => {
      const callersOfName = new Map(same.map(([, caller]) => [callerKey(caller), caller]))
      return callersOfName.size === 1 ? [[name, [...callersOfName.values()][0] as Caller] as const] : []
    }),
  )
}

function readCallers(
  source: Source,
  written: Readonly<Record<string, object>>,
): readonly (readonly [string, Caller])[] {
  return Object.entries(written).flatMap(([name, caller]) => {
    try {
      return [[name, defineCaller(caller)] as const]
    } catch (error) {
      const [, field = ''] = /^caller\.(\w+)/.exec(messageOf(error)) ?? []
      const at = field in caller ? ['callers', name, field] : ['callers', name]
      source.report(at, messageOf(error).replace(/^caller\.?/, ''), { atKey: field !== '' })
      return []
    }
  })
}
