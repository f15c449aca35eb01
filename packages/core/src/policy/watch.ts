import { ConfigError } from '@toolgate/values'
import { type Aliases, findTaken } from '../tools/aliases.ts'
import type { Catalog } from '../tools/catalog.ts'
import type { Tool } from '../tools/tool.ts'
import { type LintWarning, lintSchema } from './lint.ts'
import { type FieldUse, fieldUsesOf, findFieldProblems, lintFields } from './field-lint.ts'
import type { ParsedPolicy } from './parse.ts'
import { lintLookAlikes } from './look-alikes.ts'
import { lintPatterns } from './pattern-lint.ts'
import { findCallFields, findUnknownLabels, type KnownLabels, lintRuns } from './run-lint.ts'
import {
  findUnknown,
  mayStillCome,
  type OtherItems,
  refuseMistakes,
  type UnknownName,
  type WrittenSelector,
} from './unknown-names.ts'

/** Checks that selectors match existing tools. */
export interface NameWatch {
  /**
   * Warns of selectors that match no tool, once all sources that may have one have listed their tools. Each warning is
   * emitted once.
   *
   * @throws {ConfigError} `selector_invalid` for certain mistakes, if the tools are fixed
   */
  check(written: readonly WrittenSelector[]): void
  /** The same, but certain mistakes are warnings too. */
  warn(written: readonly WrittenSelector[]): void
  /**
   * Warns of aliases that are also ids of tools.
   *
   * @throws {ConfigError} if the tools are fixed
   */
  checkAliases(): void
  /** Checks selectors again that were undecided before. */
  look(): void
}

/** Bounds the memory for gates with very many policies. */
const MAX_KEPT = 10_000

export function createNameWatch(
  catalog: Pick<Catalog, 'dynamic' | 'snapshot' | 'unlisted' | 'items' | 'sources'>,
  aliases: Aliases,
  onWarning: (warning: LintWarning) => void,
): NameWatch {
  const waiting = new Map<string, WrittenSelector>()
  const emittedKeys = new Set<string>()
  const warn = (unknown: readonly UnknownName[]) => {
    const { unlisted } = catalog
    for (const { path, text, selector } of unknown) {
      const key = `${path} ${selector.text}`
      // An unknown hint is an error already.
      if (selector.kind === 'hint' || emittedKeys.has(key)) continue
      if (mayStillCome(selector, unlisted)) {
        if (waiting.size < MAX_KEPT) waiting.set(key, { path, selector })
      } else if (emittedKeys.size < MAX_KEPT) {
        emittedKeys.add(key)
        onWarning({ code: 'selector_unmatched', path, text })
      }
    }
  }
  const warnOfTaken = () => {
    for (const { path, text } of aliases.size === 0 ? [] : findTaken(aliases, catalog.snapshot())) {
      if (emittedKeys.has(path)) continue
      emittedKeys.add(path)
      onWarning({ code: 'alias_taken', path, text })
    }
  }
  const find = (written: readonly WrittenSelector[]) => findUnknown(written, catalog.snapshot(), othersOf(catalog))
  return {
    checkAliases() {
      const [first] = findTaken(aliases, catalog.snapshot())
      if (first && !catalog.dynamic) throw new ConfigError(first.path, first.text)
      warnOfTaken()
    },
    check(written) {
      const unknown = find(written)
      if (!catalog.dynamic) refuseMistakes(unknown, catalog.snapshot())
      warn(unknown)
    },
    warn: (written) => warn(find(written)),
    look() {
      warnOfTaken()
      if (waiting.size === 0) return
      const again = [...waiting.values()]
      waiting.clear()
      warn(find(again))
    },
  }
}

/** Checks the names of rules against fixed tools. @throws {ConfigError} */
export function checkFixedNames(
  catalog: Pick<Catalog, 'snapshot' | 'items' | 'sources'>,
  aliases: Aliases,
  written: readonly WrittenSelector[],
): void {
  const snapshot = catalog.snapshot()
  const [first] = findTaken(aliases, snapshot)
  if (first) throw new ConfigError(first.path, first.text)
  refuseMistakes(findUnknown(written, snapshot, othersOf(catalog)), snapshot)
}

function othersOf({ items, sources }: Pick<Catalog, 'items' | 'sources'>): OtherItems {
  return { items: items(), sources }
}

const emitted = new Set<string>()

/** Emits a warning of the process, each distinct one once. */
export function emitWarning({ code, path, text }: LintWarning): void {
  const message = `${path}: ${text}`
  if (emitted.has(message) || emitted.size >= MAX_KEPT) return
  emitted.add(message)
  process.emitWarning(message, { type: 'ToolgateWarning', code })
}

/**
 * Checks labels and fields against fixed tools.
 *
 * @throws {ConfigError} for a label that is near a known one, and a field that no input can have
 */
export function checkFixedConditions(
  catalog: Pick<Catalog, 'snapshot'>,
  policies: readonly ParsedPolicy[],
  labels: KnownLabels,
  costs: readonly FieldUse[],
): void {
  const mistake = findUnknownLabels(policies, catalog.snapshot(), labels).find(({ isMistake }) => isMistake)
  if (mistake) throw new ConfigError(mistake.path, mistake.text)
  const snapshot = catalog.snapshot()
  const fields = [
    ...findFieldProblems([...fieldUsesOf(policies), ...costs], snapshot),
    ...findCallFields(policies, snapshot),
  ]
  const field = fields.find(({ isMistake }) => isMistake)
  if (field) throw new ConfigError(field.path, field.text, { code: 'condition_invalid' })
}

/** The rules of a gate beside its policies, as far as they are watched. */
export interface WatchedRules {
  readonly labels: KnownLabels
  /** The costs of limits. */
  readonly costs: readonly FieldUse[]
  /** Limits that are never reached. */
  readonly covered: readonly LintWarning[]
  /** The selectors of limits, caps and labels. */
  readonly listed: readonly WrittenSelector[]
}

/**
 * Returns a function that warns of rules that are probably wrong, once the tools that they are about are known. Each
 * warning is emitted once.
 */
export function createConditionWatch(
  catalog: Pick<Catalog, 'snapshot' | 'unlisted'>,
  onWarning: (warning: LintWarning) => void,
): (policies: readonly ParsedPolicy[], rules: WatchedRules) => void {
  const emittedKeys = new Set<string>()
  return (policies, { labels, costs, covered, listed }) => {
    const { unlisted } = catalog
    const snapshot = catalog.snapshot()
    const found = [
      ...lintFields([...fieldUsesOf(policies), ...costs], snapshot, unlisted),
      ...lintPatterns(policies),
      ...lintLookAlikes(policies, snapshot, listed),
      ...covered,
      ...(unlisted.length > 0 ? [] : lintRuns(policies, snapshot, labels)),
    ]
    for (const warning of found) {
      const key = `${warning.path} ${warning.text}`
      if (emittedKeys.has(key) || emittedKeys.size >= MAX_WARNINGS) continue
      emittedKeys.add(key)
      onWarning(warning)
    }
  }
}

/** Bounds log and memory for an upstream that keeps changing its schemas. */
const MAX_WARNINGS = 1000

/** Returns a function that warns of unchecked schema keywords, for tools that are new since its last call. */
export function createSchemaWatch(
  catalog: Pick<Catalog, 'snapshot'>,
  onWarning: (warning: LintWarning) => void,
): () => void {
  const seen = new WeakSet<Tool>()
  const emittedKeys = new Set<string>()
  return () => {
    for (const tool of catalog.snapshot().tools) {
      if (seen.has(tool)) continue
      seen.add(tool)
      for (const warning of lintSchema(tool)) {
        if (emittedKeys.has(warning.path) || emittedKeys.size >= MAX_WARNINGS) continue
        emittedKeys.add(warning.path)
        onWarning(warning)
      }
    }
  }
}
