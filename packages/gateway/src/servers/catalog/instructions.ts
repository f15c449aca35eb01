import { type Caller, defineTool, type Tool, type View } from '@toolgate/core'
import type { MissingConnection } from '@toolgate/core/groups'
import { cut } from '@toolgate/values'
import { checkDefinition, type DefinitionMode, FINDINGS } from '@toolgate/core/pins'
import type { Toolset } from '@toolgate/core/toolset'

/** A server that may provide instructions for models. */
export interface InstructingServer {
  readonly name: string
  /** The operator's text that replaces the server's own; `false` for none. */
  readonly configured: string | false | undefined
  /** The server's own text, from the latest handshake of the instance that the caller's list comes from. */
  readonly own: (caller: Caller) => string | undefined
}

export interface InstructionsDeps {
  readonly servers: () => readonly InstructingServer[]
  /** Returns the current tools, resources, templates and prompts of a caller. */
  readonly catalogOf: (caller: Caller) => { readonly snapshot: Toolset; readonly items: Toolset }
  /** What to do about hidden characters in a server's own text. */
  readonly check: DefinitionMode
  readonly warn: (message: string, server: string) => void
  /** Returns the servers that the caller must connect first, and how. Default: none. */
  readonly missing?: (caller: Caller) => readonly MissingConnection[]
}

/** The maximum length in characters of one server's text. The next constant limits all texts together. */
const MAX_CHARS = 8_000
const MAX_ALL_CHARS = 32_000

/**
 * The instructions that clients receive when they connect: the gateway's own, then those of each server of which the
 * caller sees an item.
 *
 * Each line of a server's text is indented, so that it cannot look like another server's part or like the gateway's
 * own.
 */
export class Instructions {
  readonly #deps: InstructionsDeps
  readonly #seen = new WeakMap<
    View,
    { readonly snapshot: Toolset; readonly items: Toolset; readonly names: ReadonlySet<string> }
  >()
  readonly #checked = new Map<string, { readonly own: string; readonly isSent: boolean }>()

  constructor(deps: InstructionsDeps) {
    this.#deps = deps
  }

  /** Returns the texts in `first`, followed by those of the servers in a view; `undefined` if there are none. */
  of(view: View, first: readonly (string | undefined)[]): string | undefined {
    const parts: string[] = first.filter((text) => text !== undefined)
    for (const { namespace, suggestion } of this.#deps.missing?.(view.caller) ?? [])
      if (suggestion !== undefined) parts.push(`The tools of the server "${namespace}" are unavailable. ${suggestion}`)
    let left = MAX_ALL_CHARS
    for (const server of this.#deps.servers()) {
      const text = this.#textOf(server, view.caller)
      if (text === undefined || !this.#seenIn(view).has(server.name)) continue
      const part = `Instructions of the server "${server.name}":\n${indent(cut(text, MAX_CHARS))}`
      left -= part.length
      if (left < 0) break
      parts.push(part)
    }
    return parts.length === 0 ? undefined : parts.join('\n\n')
  }

  #textOf({ name, configured, own }: InstructingServer, caller: Caller): string | undefined {
    if (configured !== undefined) return configured === false ? undefined : configured
    const text = own(caller)?.trim()
    if (!text) return undefined
    let checked = this.#checked.get(name)
    if (checked?.own !== text) this.#checked.set(name, (checked = { own: text, isSent: this.#isFit(name, text) }))
    return checked.isSent ? text : undefined
  }

  /** Checks a text like the description of a tool, which models read too. */
  #isFit(server: string, text: string): boolean {
    const { check, warn } = this.#deps
    if (check === 'off') return true
    const findings = checkDefinition(defineTool({ name: server, description: cut(text, MAX_CHARS) }))
    const worst = findings.find(({ code, pointer }) => pointer === '/description' && FINDINGS[code].quarantines)
    if (!worst) return true
    const isSent = check !== 'quarantine'
    warn(`its instructions ${isSent ? 'are suspicious' : 'are not sent'}: ${worst.text}`, server)
    return isSent
  }

  /** The servers of which the caller sees at least one item. */
  #seenIn(view: View): ReadonlySet<string> {
    const { snapshot, items } = this.#deps.catalogOf(view.caller)
    let seen = this.#seen.get(view)
    if (seen?.snapshot !== snapshot || seen.items !== items) {
      const names = new Set<string>()
      const add = ({ namespace }: Tool) => namespace !== undefined && names.add(namespace)
      for (const tool of snapshot) if (view.has(tool.id)) add(tool)
      if (items.size > 0) for (const kind of OTHER_KINDS) view.items(kind).forEach(add)
      this.#seen.set(view, (seen = { snapshot, items, names }))
    }
    return seen.names
  }
}

const OTHER_KINDS = ['resource', 'template', 'prompt'] as const

/** A line break. Every character that starts a new line counts, including those of Unicode. */
const LINE = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/

function indent(text: string): string {
  return text
    .split(LINE)
    .map((line) => (line.trim() === '' ? '' : `  ${line}`))
    .join('\n')
}
