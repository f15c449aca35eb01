import { ConfigError } from '../errors.ts'
import { type Aliases, findTaken } from '../tools/aliases.ts'
import type { Catalog } from '../tools/catalog.ts'
import type { Tool } from '../tools/tool.ts'
import { type LintWarning, lintSchema } from './lint.ts'
import { findUnknown, mayStillCome, refuseMistakes, type UnknownName, type WrittenSelector } from './unknown-names.ts'

/** Checks that what selectors name exists. */
export interface NameWatch {
  /**
   * Warns of selectors that no tool matches: now, or when the sources that may bring one have listed their tools.
   * Each is told once.
   *
   * @throws {ConfigError} `selector_invalid` for those that can only be mistakes, where the tools are fixed
   */
  check(written: readonly WrittenSelector[]): void
  /**
   * Warns of aliases that are ids of tools too.
   *
   * @throws {ConfigError} where the tools are fixed
   */
  checkAliases(): void
  /** Looks again at those that could not be judged before. */
  look(): void
}

/** More are not remembered: a name in each of a million policies must not fill the memory. */
const MAX_KEPT = 10_000

export function createNameWatch(
  catalog: Pick<Catalog, 'dynamic' | 'snapshot' | 'unlisted'>,
  aliases: Aliases,
  onWarning: (warning: LintWarning) => void,
): NameWatch {
  const waiting = new Map<string, WrittenSelector>()
  const told = new Set<string>()
  const tell = (unknown: readonly UnknownName[]) => {
    const { unlisted } = catalog
    for (const { path, text, selector } of unknown) {
      const key = `${path} ${selector.text}`
      // A hint cannot be misspelt: an unknown one is an error already.
      if (selector.kind === 'hint' || told.has(key)) continue
      if (mayStillCome(selector, unlisted)) {
        if (waiting.size < MAX_KEPT) waiting.set(key, { path, selector })
      } else if (told.size < MAX_KEPT) {
        told.add(key)
        onWarning({ code: 'selector_unmatched', path, text })
      }
    }
  }
  const tellTaken = () => {
    for (const { path, text } of aliases.size === 0 ? [] : findTaken(aliases, catalog.snapshot())) {
      if (told.has(path)) continue
      told.add(path)
      onWarning({ code: 'alias_taken', path, text })
    }
  }
  return {
    checkAliases() {
      const [first] = findTaken(aliases, catalog.snapshot())
      if (first && !catalog.dynamic) throw new ConfigError(first.path, first.text)
      tellTaken()
    },
    check(written) {
      const snapshot = catalog.snapshot()
      const unknown = findUnknown(written, snapshot)
      if (!catalog.dynamic) refuseMistakes(unknown, snapshot)
      tell(unknown)
    },
    look() {
      tellTaken()
      if (waiting.size === 0) return
      const again = [...waiting.values()]
      waiting.clear()
      tell(findUnknown(again, catalog.snapshot()))
    },
  }
}

const emitted = new Set<string>()

/** Emits a warning of the process, once for each distinct one. */
export function emitWarning({ code, path, text }: LintWarning): void {
  const message = `${path}: ${text}`
  if (emitted.has(message) || emitted.size >= MAX_KEPT) return
  emitted.add(message)
  process.emitWarning(message, { type: 'ToolgateWarning', code })
}

/** An upstream that changes its schemas for ever must fill neither the log nor the memory. */
const MAX_TOLD = 1000

/** Returns a function that warns of the keywords that are not checked of tools that are new since its last call. */
export function createSchemaWatch(
  catalog: Pick<Catalog, 'snapshot'>,
  onWarning: (warning: LintWarning) => void,
): () => void {
  const seen = new WeakSet<Tool>()
  const told = new Set<string>()
  return () => {
    for (const tool of catalog.snapshot().tools) {
      if (seen.has(tool)) continue
      seen.add(tool)
      for (const warning of lintSchema(tool)) {
        if (told.has(warning.path) || told.size >= MAX_TOLD) continue
        told.add(warning.path)
        onWarning(warning)
      }
    }
  }
}
