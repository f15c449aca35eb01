import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  type YAMLParseError,
} from 'yaml'
import type { Filled } from './fill.ts'
import { type ConfigPath, type ConfigProblem, type ConfigWarning, formatPath } from './problems.ts'
import type { ConfigPlace } from '../model/config-place.ts'

/** A parsed file: its values and their positions. */
export interface Source {
  readonly root: SourceNode | undefined
  readonly problems: ConfigProblem[]
  /** Likely mistakes in a valid file. */
  readonly warnings: ConfigWarning[]
  /** The values that this machine lacks, by the server that waits for them. */
  readonly absent: ReadonlyMap<string, readonly ConfigProblem[]>
  get(path: ConfigPath): SourceNode | undefined
  /** Returns the position of a value or its key; `undefined` for an absent value. */
  placeOf(path: ConfigPath): ConfigPlace | undefined
  /** Reports a problem with a value, or with the nearest enclosing value if it is absent. */
  report(path: ConfigPath, message: string, options?: { atKey?: boolean; offset?: number | undefined }): void
  /** Adds a warning about the value at `at`. `path` is its path in messages. */
  warn(warning: { code: ConfigWarning['code']; at: ConfigPath; path: string; text: string }): void
}

/** Fills the `${…}` of a text at a path. */
type Fill = (text: string, path: ConfigPath) => Filled

function asWritten(text: string): Filled {
  return { text, changed: false, isUnread: false, problems: [] }
}

const MAX_LENGTH = 1024 * 1024

/** Parses one document of YAML 1.2 (core schema), and fills its texts. Problems are collected, not thrown. */
export function parseSource(file: string, text: string, fill: Fill = asWritten): Source {
  const lines = new LineCounter()
  const problems: ConfigProblem[] = []
  const warnings: ConfigWarning[] = []
  const absent = new Map<string, ConfigProblem[]>()
  // The paths of values that could not be read. Each has one problem, and later checks of it are not reported.
  const unread = new Set<string>()
  const toProblem = (offset: number, path: ConfigPath, message: string): ConfigProblem => {
    const { line, col } = lines.linePos(offset)
    // An empty file has no lines.
    return { file, line: line || 1, column: col || 1, path: formatPath(path), message }
  }
  const add: Add = (offset, path, message) => problems.push(toProblem(offset, path, message))
  const onAbsent = (server: string, ...problem: Parameters<Add>) => {
    const known = absent.get(server) ?? []
    absent.set(server, [...known, toProblem(...problem)])
    unread.add(formatPath(problem[1]))
  }
  const document = parseYaml(text, lines, add)
  const root =
    document && problems.length === 0
      ? toTree(document, { text, fill, report: add, onAbsent, onUnread: (path) => unread.add(formatPath(path)) })
      : undefined
  for (const { path } of problems) unread.add(path)
  return {
    root,
    problems,
    warnings,
    absent,
    warn({ code, at, path, text: message }) {
      const { line, col } = lines.linePos(find(root, at).at(-1)?.node.start ?? 0)
      warnings.push({ code, file, line: line || 1, column: col || 1, path, message })
    },
    get: (path) => find(root, path).at(path.length)?.node,
    placeOf(path) {
      const place = find(root, path).at(path.length)
      if (!place) return undefined
      const { line, col: column } = lines.linePos(place.keyStart ?? place.node.start)
      return { file, line, column }
    },
    report(path, message, { atKey = false, offset } = {}) {
      if (unread.has(formatPath(path))) return
      const places = find(root, path)
      const { node, keyStart } = places.at(-1) ?? { node: { value: undefined, start: 0 } }
      const isThere = places.length > path.length
      if (isThere && offset !== undefined && node.inside) add(node.inside(offset), path, message)
      else add(atKey && keyStart !== undefined ? keyStart : node.start, path, message)
    },
  }
}

type Add = (offset: number, path: ConfigPath, message: string) => unknown

export function parseYaml(text: string, lineCounter: LineCounter, add: Add): Document.Parsed | undefined {
  if (text.length > MAX_LENGTH) {
    add(0, [], `the file has ${text.length} characters, expected at most ${MAX_LENGTH}`)
    return undefined
  }
  const { stackTraceLimit } = Error
  try {
    // A text may have an error at each character. Most of the cost is their stack traces, so these are turned off.
    Error.stackTraceLimit = 0
    const document = parseDocument(text, {
      version: '1.2',
      schema: 'core',
      // Duplicate keys are checked in the tree, where their paths are known.
      uniqueKeys: false,
      prettyErrors: false,
      lineCounter,
    })
    checkDocument(document, text, add)
    return document
  } catch (error) {
    // The parser recurses, so deep nesting overflows its stack.
    if (!(error instanceof RangeError)) throw error
    add(0, [], 'the file is nested too deeply to be read')
    return undefined
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function checkDocument({ errors, directives, contents }: Document.Parsed, text: string, add: Add): void {
  const [error] = errors
  // Later errors are mostly consequences of the first.
  if (error) add(error.pos[0], [], `not YAML: ${yamlMessage(error, text)}`)
  else if (!contents) add(0, [], 'the file is empty, expected a mapping with the key "servers"')
  const version = directives?.yaml.version
  if (version !== '1.2') add(0, [], `found YAML ${version}, expected YAML 1.2`)
}

function yamlMessage({ code, message, pos }: YAMLParseError, text: string): string {
  if (code === 'MULTIPLE_DOCS') return 'found several documents, expected one'
  if (text.slice(pos[0] - 1, pos[0] + 1) === '${') return 'found ${ inside { } or [ ], expected it in quotes: "${VAR}"'
  return message.charAt(0).toLowerCase() + message.slice(1)
}

interface NodePlace {
  readonly node: SourceNode
  readonly keyStart?: number
}

/** Returns the existing places along a path, the root first. */
function find(root: SourceNode | undefined, path: ConfigPath): readonly NodePlace[] {
  const places: NodePlace[] = root ? [{ node: root }] : []
  for (const part of path) {
    const node = places.at(-1)?.node
    const item = typeof part === 'number' ? node?.items?.[part] : undefined
    const next = typeof part === 'number' ? item && { node: item } : node?.entries?.get(part)
    if (!next) break
    places.push(next)
  }
  return places
}

/** One value of the file, filled in, with its position. Offsets are in UTF-16 units from the start of the file. */
export interface SourceNode {
  readonly value: unknown
  readonly start: number
  /** For a mapping: its entries by key. */
  readonly entries?: ReadonlyMap<string, SourceEntry>
  readonly items?: readonly SourceNode[]
  /** For a text: the text before `${…}` was filled in. */
  readonly written?: string
  /** For a text: maps an offset in its value to an offset in the file. */
  readonly inside?: (offset: number) => number
}

interface SourceEntry {
  readonly keyStart: number
  readonly node: SourceNode
}

interface TreeOptions {
  /** The text of the file. */
  readonly text: string
  readonly fill: Fill
  readonly report: (offset: number, path: ConfigPath, message: string) => void
  readonly onUnread: (path: ConfigPath) => void
  /** Called for a value of one server that this machine lacks. */
  readonly onAbsent: (server: string, ...problem: Parameters<Add>) => void
}

/**
 * Returns the values of a parsed document with their positions. Texts are filled in, and aliases are followed.
 *
 * Reports tags, keys that are not text or are duplicates, `__proto__`, and aliases that refer to themselves or multiply
 * without bound. The value of anything reported is `undefined`.
 */
function toTree(document: Document.Parsed, options: TreeOptions): SourceNode {
  return visit({ ...options, anchors: new Map(), open: new Set(), count: 0 }, document.contents, [], 0)
}

interface Walk extends TreeOptions {
  /** The latest value of each anchor so far. An alias refers to an earlier anchor. */
  readonly anchors: Map<string, Node>
  /** The values that enclose the current one. */
  readonly open: Set<Node>
  count: number
}

const MAX_NODES = 50_000
const MAX_DEPTH = 32
const CORE_TAGS: ReadonlySet<string> = new Set(
  ['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((name) => `tag:yaml.org,2002:${name}`),
)

function visit(walk: Walk, node: Node | null, path: ConfigPath, around: number): SourceNode {
  const start = node?.range?.[0] ?? around
  const problem = problemOf(walk, node, path)
  if (problem !== undefined) {
    if (problem) walk.report(start, path, problem)
    return { value: undefined, start }
  }
  const target = isAlias(node) ? walk.anchors.get(node.source) : node
  if (target !== node) return visit(walk, target ?? null, path, start)
  if (!node) return { value: null, start }
  if ('anchor' in node && node.anchor) walk.anchors.set(node.anchor, node)
  walk.open.add(node)
  const result = visitValue(walk, node, path, start)
  walk.open.delete(node)
  return result
}

/** Returns why a value is invalid; an empty text if the problem is already reported. */
function problemOf(walk: Walk, node: Node | null, path: ConfigPath): string | undefined {
  walk.count++
  if (walk.count === MAX_NODES + 1) return `the file has more than ${MAX_NODES} values once its aliases are followed`
  if (walk.count > MAX_NODES) return ''
  if (path.length > MAX_DEPTH) return `nested deeper than ${MAX_DEPTH} levels`
  if (isAlias(node)) {
    const target = walk.anchors.get(node.source)
    if (!target) return `the alias *${node.source} has no anchor before it`
    return walk.open.has(target) ? `the alias *${node.source} refers to a value that holds it` : undefined
  }
  return node?.tag && !CORE_TAGS.has(node.tag) ? `found the tag ${node.tag}, expected a value without one` : undefined
}

function visitValue(walk: Walk, node: Node, path: ConfigPath, start: number): SourceNode {
  if (isMap(node)) return visitMap(walk, node.items as Pair<Node, Node | null>[], path, start)
  if (isScalar(node)) return visitScalar(walk, node, path, start)
  const nodes = isSeq(node) ? (node.items as (Node | null)[]) : []
  const items = nodes.map((item, i) => visit(walk, item, [...path, i], start))
  return { value: items.map((item) => item.value), start, items }
}

function visitMap(walk: Walk, pairs: Pair<Node, Node | null>[], path: ConfigPath, start: number): SourceNode {
  const entries = new Map<string, SourceEntry>()
  for (const { key, value } of pairs) {
    const keyStart = key?.range?.[0] ?? start
    const name = keyText(key)
    if (name === undefined) walk.report(keyStart, path, 'found a key that is not text')
    else if (name === '__proto__') walk.report(keyStart, path, 'found the key "__proto__", which is not allowed')
    else if (entries.has(name))
      walk.report(keyStart, [...path, name], `found "${name}" a second time, expected each key once`)
    else entries.set(name, { keyStart, node: visit(walk, value, [...path, name], keyStart) })
  }
  const value = Object.fromEntries([...entries].map(([name, entry]) => [name, entry.node.value]))
  return { value, start, entries }
}

function keyText(key: Node): string | undefined {
  if (!isScalar(key) || key.value === null) return undefined
  return key.source ?? (typeof key.value === 'string' ? key.value : JSON.stringify(key.value))
}

function visitScalar(walk: Walk, scalar: Scalar, path: ConfigPath, start: number): SourceNode {
  const { value } = scalar
  if (typeof value !== 'string') return { value, start }
  const { text, changed, isUnread, problems } = walk.fill(value, path)
  if (isUnread) walk.onUnread(path)
  const inside = placeInside(walk.text, scalar, start, value)
  for (const { offset, message, isAbsent } of problems) {
    const [section, server] = path
    if (isAbsent && section === 'servers' && path.length > 2)
      walk.onAbsent(String(server), inside(offset), path, message)
    else walk.report(inside(offset), path, message)
  }
  return {
    value: changed && scalar.type === 'PLAIN' ? typed(text, path) : text,
    start,
    written: value,
    inside: changed ? () => start : inside,
  }
}

const NUMBERS: ReadonlySet<unknown> = new Set(['port', 'startTimeoutMs', 'callTimeoutMs'])
const FLAGS: ReadonlySet<unknown> = new Set(['loopback', 'trustHints'])

/** Returns a filled-in text with its type, so that `port: ${PORT:-8787}` is a number. */
function typed(text: string, path: ConfigPath): unknown {
  const key = path.at(-1)
  if (NUMBERS.has(key) && /^\d{1,15}$/.test(text)) return Number(text)
  if (FLAGS.has(key) && /^(true|false)$/.test(text)) return text === 'true'
  return text
}

/**
 * Returns a function that maps offsets in a text to offsets in the file.
 *
 * The two differ only in white space (indentation, folding), so they are compared side by side. If an escape causes
 * another difference, the result is the start of the text.
 */
function placeInside(file: string, scalar: Scalar, start: number, value: string): (offset: number) => number {
  const isBlock = scalar.type?.startsWith('BLOCK')
  const opening = scalar.type?.startsWith('QUOTE') ? 1 : 0
  return (offset) => {
    let at = isBlock ? file.indexOf('\n', start) + 1 : start + opening
    for (let i = 0; i <= Math.min(offset, value.length - 1); i++) {
      if (isSpace(value[i]) && i < offset) continue
      while (isSpace(file[at]) && !isSpace(value[i])) at++
      if (file[at] !== value[i] && !(isSpace(file[at]) && isSpace(value[i]))) return start
      if (i < offset) at++
    }
    return at
  }
}

function isSpace(char: string | undefined): boolean {
  return char === ' ' || char === '\n' || char === '\t' || char === '\r'
}
