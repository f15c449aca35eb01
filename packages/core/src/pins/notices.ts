import { sha256Hex } from '../util/hash.ts'
import { definitionHash, definitionOf } from '../tools/definition-hash.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { DefinitionChecks } from './checks.ts'
import type { DefinitionFinding } from './definition-check.ts'
import { type DefinitionDiff, diffDefinitions } from './diff.ts'
import type { Holding } from './holding.ts'
import type { Pin, PinBook } from './pin-book.ts'
import type { DefinitionMode, PinMode } from './pin-rules.ts'
import { capped } from './spell.ts'
import type { TellOnce } from './telling.ts'

export type PinEvent =
  | {
      readonly kind: 'changed'
      readonly tool: string
      readonly hash: string
      readonly pinnedHash: string
      readonly diff: DefinitionDiff
      readonly text: string
      readonly suspended: boolean
    }
  | {
      readonly kind: 'added'
      readonly tool: string
      readonly hash: string
      readonly text: string
    }
  | {
      readonly kind: 'flagged'
      readonly tool: string
      readonly hash: string
      readonly findings: readonly DefinitionFinding[]
      readonly text: string
      readonly quarantined: boolean
    }
  | {
      readonly kind: 'accepted'
      readonly tool: string
      readonly hash: string
      readonly by: string
      readonly text: string
    }

export interface Notices {
  /** Tells what differs from its pin, and what is found, in a snapshot. */
  look(snapshot: Toolset): void
  /** From the pinned definition to this one. */
  diffOf(tool: Tool): DefinitionDiff | undefined
  isBusy(): boolean
  /** Resolves when all that was begun is told. */
  idle(): Promise<void>
}

const MAX_TEXT = 2000

export function createNotices({
  mode,
  holdsNew,
  check,
  book,
  checks,
  holding,
  emit,
  tellOnce,
}: {
  readonly mode: PinMode
  readonly holdsNew: boolean
  readonly check: DefinitionMode
  readonly book: PinBook
  readonly checks: DefinitionChecks
  readonly holding: Holding
  readonly emit: (event: PinEvent) => void
  readonly tellOnce: TellOnce
}): Notices {
  const diffs = new Map<string, { readonly key: string; diff: DefinitionDiff | undefined }>()
  const flagged = new WeakMap<Tool, string>()
  const added = new Set<string>()
  const underWay = new Set<Promise<void>>()
  const start = (work: Promise<void>) => {
    const done = work.finally(() => underWay.delete(done))
    underWay.add(done)
  }

  const lookAtChange = (tool: Tool, pin: Pin | undefined) => {
    const hash = definitionHash(tool)
    if (!pin || pin.hash === hash) {
      diffs.delete(tool.id)
      return
    }
    const key = `${pin.hash} ${hash}`
    if (diffs.get(tool.id)?.key === key) return
    const entry: { readonly key: string; diff: DefinitionDiff | undefined } = { key, diff: undefined }
    diffs.set(tool.id, entry)
    start(tellChange(tool, pin, entry))
  }
  const tellChange = async (
    tool: Tool,
    pin: Pin,
    entry: { readonly key: string; diff: DefinitionDiff | undefined },
  ) => {
    const diff = diffDefinitions(await book.definition(pin.hash), definitionOf(tool))
    entry.diff = diff
    await tellOnce(tool.id, `changed ${entry.key}`, () =>
      emit({
        kind: 'changed',
        tool: tool.id,
        hash: definitionHash(tool),
        pinnedHash: pin.hash,
        diff,
        text: capped(diff.text, MAX_TEXT),
        suspended: mode === 'suspend',
      }),
    )
  }
  const lookAtNew = ({ id, description }: Tool, hash: string) => {
    if (!book.isNew(id) || added.has(id)) return
    added.add(id)
    const text = capped(`"${id}" is new: ${description}`, MAX_TEXT)
    start(tellOnce(id, 'added', () => emit({ kind: 'added', tool: id, hash, text })))
  }
  const lookAtFindings = (tool: Tool, snapshot: Toolset) => {
    const findings = checks.findings(tool, snapshot)
    if (findings.length === 0) return
    const text = findings.map((finding) => finding.text).join('\n')
    if (flagged.get(tool) === text) return
    flagged.set(tool, text)
    const event: PinEvent = {
      kind: 'flagged',
      tool: tool.id,
      hash: definitionHash(tool),
      findings,
      text: capped(text, MAX_TEXT),
      quarantined: holding.quarantined(tool, snapshot) !== undefined,
    }
    start(tellOnce(tool.id, `flagged ${sha256Hex(text)}`, () => emit(event)))
  }

  return {
    look(snapshot) {
      if (mode !== 'off') {
        for (const tool of diffs.keys()) if (!snapshot.has(tool)) diffs.delete(tool)
        for (const tool of snapshot) lookAtChange(tool, book.firstOf(tool.id))
      }
      if (holdsNew) for (const tool of snapshot) lookAtNew(tool, definitionHash(tool))
      if (check !== 'off') for (const tool of snapshot) lookAtFindings(tool, snapshot)
    },
    diffOf: (tool) => diffs.get(tool.id)?.diff,
    isBusy: () => underWay.size > 0,
    async idle() {
      await Promise.all(underWay)
    },
  }
}
