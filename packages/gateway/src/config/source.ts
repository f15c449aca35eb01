import { type Document, LineCounter, parseDocument, type YAMLParseError } from 'yaml'
import type { FillContext } from './fill.ts'
import { type ConfigPath, type ConfigProblem, type ConfigWarning, formatPath } from './problems.ts'
import { type SourceNode, toTree } from './tree.ts'

/** A file that was read: its values, and where each one is. */
export interface Source {
  readonly root: SourceNode | undefined
  readonly problems: ConfigProblem[]
  /** Probably not meant; the file can be used. */
  readonly warnings: ConfigWarning[]
  get(path: ConfigPath): SourceNode | undefined
  /** Reports a problem with a value; with the nearest value around it when it is absent. */
  report(path: ConfigPath, message: string, options?: { atKey?: boolean; offset?: number | undefined }): void
  /** Warns of the value at `at`. `path` is where it is in messages. */
  warn(warning: { code: ConfigWarning['code']; at: ConfigPath; path: string; text: string }): void
}

const MAX_LENGTH = 1024 * 1024

/** Reads YAML 1.2 (core schema), one document, and fills its texts. Problems are kept, not thrown. */
export function parseSource(file: string, text: string, fill: (path: ConfigPath) => FillContext): Source {
  const lines = new LineCounter()
  const problems: ConfigProblem[] = []
  const warnings: ConfigWarning[] = []
  // A value that could not be read has one problem, not one more for each check that it then fails.
  const unread = new Set<string>()
  const add: Add = (offset, path, message) => {
    const { line, col } = lines.linePos(offset)
    // An empty file has no line for the counter to name.
    problems.push({ file, line: line || 1, column: col || 1, path: formatPath(path), message })
  }
  const document = parseYaml(text, lines, add)
  const root = document && problems.length === 0 ? toTree(document, { text, fill, report: add }) : undefined
  for (const { path } of problems) unread.add(path)
  return {
    root,
    problems,
    warnings,
    warn({ code, at, path, text: message }) {
      const { line, col } = lines.linePos(find(root, at).at(-1)?.node.start ?? 0)
      warnings.push({ code, file, line: line || 1, column: col || 1, path, message })
    },
    get: (path) => find(root, path).at(path.length)?.node,
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

type Add = (offset: number, path: ConfigPath, message: string) => void

function parseYaml(text: string, lineCounter: LineCounter, add: Add): Document.Parsed | undefined {
  if (text.length > MAX_LENGTH) {
    add(0, [], `the file has ${text.length} characters, expected at most ${MAX_LENGTH}`)
    return undefined
  }
  try {
    const document = parseDocument(text, {
      version: '1.2',
      schema: 'core',
      // Found in the tree, where the path of the second one is known.
      uniqueKeys: false,
      prettyErrors: false,
      lineCounter,
    })
    checkDocument(document, text, add)
    return document
  } catch (error) {
    // The parser recurses, so nesting that is deep enough ends it.
    if (!(error instanceof RangeError)) throw error
    add(0, [], 'the file is nested too deeply to be read')
    return undefined
  }
}

function checkDocument({ errors, directives, contents }: Document.Parsed, text: string, add: Add): void {
  const [error] = errors
  // Those after the first are mostly its consequences.
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

interface Place {
  readonly node: SourceNode
  readonly keyStart?: number
}

/** Gives the places along a path, the root first, as far as the file goes. */
function find(root: SourceNode | undefined, path: ConfigPath): readonly Place[] {
  const places: Place[] = root ? [{ node: root }] : []
  for (const part of path) {
    const node = places.at(-1)?.node
    const item = typeof part === 'number' ? node?.items?.[part] : undefined
    const next = typeof part === 'number' ? item && { node: item } : node?.entries?.get(part)
    if (!next) break
    places.push(next)
  }
  return places
}
