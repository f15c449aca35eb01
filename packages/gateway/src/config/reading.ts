import { didYouMean } from '@toolgate/values'
import type * as z from 'zod'
import type { ConfigPath } from './problems.ts'
import type { Source, SourceNode } from './source.ts'

/** One problem with policies, as core reports it. */
export interface PolicyProblem {
  /** The path, such as `policy[0].deny[1].when`. */
  readonly path: string
  readonly message: string
  /** Offset into the text at `path`, if known. */
  readonly offset?: number | undefined
}

/** Checks selectors and CEL, and returns the problems. */
export type CheckPolicy = (policies: readonly unknown[], groupNames: readonly string[]) => readonly PolicyProblem[]

/** The state that the readers of all sections of one file share. */
export interface Reading {
  readonly source: Source
  /** Absolute folder of the file. Relative paths start here. */
  readonly configDir: string
  /** Absolute file names from which packages are resolved. */
  readonly packagesFrom: readonly string[]
  /** The environment. A value that becomes a part of the configuration is read with `variable`. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Returns a variable of the environment, whose value counts as a secret. */
  readonly variable: (name: string) => string | undefined
  readonly checkPolicy: CheckPolicy
  readonly groupNames: readonly string[]
  /** Returns the value of a section that was read before; `undefined` if it has none. */
  of<Value>(section: { read(reading: Reading, key: string): Value | undefined }): Value | undefined
}

/** Returns the keys of a mapping. Returns none for any other value, as the shape is checked elsewhere. */
export function keysOf(source: Source, path: ConfigPath): readonly string[] {
  return [...(source.get(path)?.entries?.keys() ?? [])]
}

/** Returns the length of a list, or 0 for any other value. */
export function lengthOf(source: Source, path: ConfigPath): number {
  return source.get(path)?.items?.length ?? 0
}

/** Returns whether the file has a value at a path. */
export function has(source: Source, path: ConfigPath): boolean {
  return source.get(path) !== undefined
}

/**
 * Checks one value of the file against a schema and reports its problems.
 * Returns the parsed value, or `undefined` if there were problems.
 */
export function checkShape<T extends z.ZodType>(source: Source, path: ConfigPath, schema: T): z.infer<T> | undefined {
  const node = source.get(path)
  if (!node) {
    source.report(path, `is missing, expected ${expectedBy(schema)}`)
    return undefined
  }
  const parsed = schema.safeParse(node.value)
  if (parsed.success) return parsed.data
  for (const issue of parsed.error.issues) explainIssue(source, path, schema, issue)
  return undefined
}

/**
 * Reads the entries of a list or a mapping one by one, so that an invalid entry does not hide the problems of another.
 * `whole` is the schema of the list or mapping. It checks the names of a mapping.
 */
export function readEach<T>(
  source: Source,
  at: ConfigPath,
  whole: z.ZodArray | z.ZodRecord<z.ZodString>,
  read: (place: ConfigPath, key: string | number) => T | undefined,
): readonly T[] {
  const node = source.get(at)
  const keys = [...(('keyType' in whole ? node?.entries : node?.items)?.keys() ?? [])]
  if (node && keys.length === 0) checkShape(source, at, whole)
  return keys.flatMap((key) => {
    const place = [...at, key]
    const problem = 'keyType' in whole ? whole.keyType.safeParse(key).error?.issues[0]?.message : undefined
    if (problem !== undefined)
      source.report(place, `found the name ${JSON.stringify(key)}, expected ${problem}`, { atKey: true })
    const entry = read(place, key)
    return entry === undefined ? [] : [entry]
  })
}

/**
 * Reports a problem with a complete message from within a schema. The place is the key, or with `atKey: false` its
 * value.
 */
export function reportIn(
  ctx: z.RefinementCtx,
  path: readonly (string | number)[],
  message: string,
  atKey = true,
): void {
  ctx.addIssue({ code: 'custom', path: [...path], message, params: { isWhole: true, atKey } })
}

type Issue = z.core.$ZodIssue

function explainIssue(source: Source, base: ConfigPath, schema: z.ZodType, issue: Issue): void {
  const path = [...base, ...(issue.path as (string | number)[])]
  if (issue.code === 'unrecognized_keys') {
    for (const key of issue.keys) reportUnknownKey(source, path, key, keysAt(schema, issue.path, source.get(path)))
    return
  }
  if (issue.code === 'invalid_key') {
    const key = String(path.at(-1))
    source.report(path, `found the name ${quote(key)}, expected ${issue.issues[0]?.message}`, { atKey: true })
    return
  }
  if (issue.code === 'invalid_union') {
    const at = source.get(path)
    const branch = at && closestBranch(issue.errors, at)
    if (branch) {
      for (const inner of branch) explainIssue(source, path, schemaAt(schema, issue.path), inner)
      return
    }
  }
  if (issue.code === 'custom' && issue.params?.['isWhole'] === true)
    return source.report(path, issue.message, { atKey: issue.params['atKey'] === true })
  const node = source.get(path)
  const subject = node ? `${found(source, path)},` : 'is missing,'
  source.report(path, `${subject} expected ${expectation(issue)}${advice(issue, node)}`)
}

/** Reports an unknown key, and names the known ones. */
export function reportUnknownKey(source: Source, path: ConfigPath, key: string, known: readonly string[]): void {
  const message = `unknown key, expected one of ${known.join(', ')}${didYouMean(key, known)}`
  source.report([...path, key], message, { atKey: true })
}

/** Returns the issues of the union branch whose kind matches, if there is exactly one. */
function closestBranch(branches: readonly (readonly Issue[])[], node: SourceNode): readonly Issue[] | undefined {
  // A mapping or a list cannot be an enum value.
  const isWord = node.entries === undefined && node.items === undefined
  const misses = ({ code, path }: Issue) =>
    path.length === 0 && (code === 'invalid_type' || (code === 'invalid_value' && !isWord))
  const fitting = branches.filter((issues) => !issues.some(misses))
  return fitting.length === 1 ? fitting[0] : undefined
}

/** Returns what an issue expects, as a noun for an error text, such as `one of a, b`. */
function expectation(issue: Issue | undefined): string {
  if (!issue) return 'another value'
  switch (issue.code) {
    case 'invalid_type':
      return TYPES.get(issue.expected) ?? issue.expected
    case 'invalid_value':
      return issue.values.length === 1 ? String(issue.values[0]) : `one of ${issue.values.join(', ')}`
    case 'invalid_union':
      return [...new Set(issue.errors.map((branch) => expectation(branch[0])))].join(' or ')
    default:
      return issue.message
  }
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['string', 'text'],
  ['number', 'a whole number'],
  ['int', 'a whole number'],
  ['boolean', 'true or false'],
  ['array', 'a list'],
  ['object', 'a mapping'],
  ['record', 'a mapping'],
])

function advice(issue: Issue, node: SourceNode | undefined): string {
  const value = node?.value
  if (issue.code === 'invalid_value' && typeof value === 'string') return didYouMean(value, issue.values.map(String))
  const scalar = typeof value === 'number' || typeof value === 'boolean'
  return issue.code === 'invalid_type' && issue.expected === 'string' && scalar ? '; write it in quotes' : ''
}

function expectedBy(schema: z.ZodType): string {
  const probe = schema.safeParse(undefined)
  return probe.success ? 'a value' : expectation(probe.error.issues[0])
}

/** Describes the value at a path without secrets and filled-in values. */
export function found(source: Source, path: ConfigPath): string {
  const node = source.get(path)
  if (!node || node.value === null) return 'found nothing'
  if (node.items) return node.items.length === 0 ? 'found an empty list' : 'found a list'
  if (node.entries) return 'found a mapping'
  if (typeof node.value !== 'string') return `found ${JSON.stringify(node.value)}`
  if (path.some((part) => SECRETS.has(part))) return `found text of ${node.value.length} characters`
  return `found ${quote(node.written ?? node.value)}`
}

const SECRETS: ReadonlySet<string | number> = new Set([
  'key',
  'olderKeys',
  'keyHash',
  'env',
  'headers',
  'proxy',
  'notify',
])

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
}

/** Returns the schema at a path, through wrappers, lists and mappings. */
function schemaAt(schema: z.ZodType, path: readonly PropertyKey[]): z.ZodType {
  let at = unwrap(schema)
  for (const part of path) {
    const next = childOf(at, part)
    if (!next) return at
    at = unwrap(next)
  }
  return at
}

function keysAt(schema: z.ZodType, path: readonly PropertyKey[], node: SourceNode | undefined): readonly string[] {
  const at = schemaAt(schema, path)
  const object = unionOptions(at).find((option) => node?.entries && shapeOf(option)) ?? at
  return Object.keys(shapeOf(object) ?? {})
}

interface Def {
  readonly innerType?: z.ZodType
  /** The input schema of a transform. */
  readonly in?: z.ZodType
  readonly element?: z.ZodType
  readonly valueType?: z.ZodType
  readonly shape?: Readonly<Record<string, z.ZodType>>
  readonly options?: readonly z.ZodType[]
}

function def(schema: z.ZodType): Def {
  return schema.def as unknown as Def
}

function unwrap(schema: z.ZodType): z.ZodType {
  const inner = def(schema).innerType ?? def(schema).in
  return inner ? unwrap(inner) : schema
}

function childOf(schema: z.ZodType, part: PropertyKey): z.ZodType | undefined {
  for (const option of unionOptions(schema)) {
    const { element, valueType, shape } = def(option)
    const child = shape && typeof part === 'string' && Object.hasOwn(shape, part) ? shape[part] : (element ?? valueType)
    if (child) return child
  }
  return undefined
}

function unionOptions(schema: z.ZodType): readonly z.ZodType[] {
  return def(schema).options ?? [schema]
}

function shapeOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> | undefined {
  return def(schema).shape
}
