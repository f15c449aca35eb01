import { checkShape, createBoundedCache, shapeOf } from '@toolgate/values'
import { deepFreeze } from '@toolgate/values/json'
import { ConfigError, type Tool, type View } from '@toolgate/core'
import { convert, toError } from './convert.ts'
import { type CustomExposure, type CustomTarget, customTarget } from './define-target.ts'
import type { ExposedTools, ExposeError, ExposeWarning, Exposure } from './exposure.ts'
import { createWireNames, toWireName, type WireNames } from './names.ts'
import {
  countTokens,
  EXPOSE_TARGETS,
  type ExposeMode,
  type ExposeOptions,
  type ExposeTarget,
  type Tokenizer,
} from './options.ts'
import { withoutNulls } from './restore.ts'
import { findTarget } from './targets/index.ts'
import type { NamedExposed, Target } from './targets/target.ts'

/** The cache keeps up to twice as many exposures, across all gates. */
const MAX_KEPT = 128
const kept = createBoundedCache<string, Exposure>(MAX_KEPT)

/**
 * Returns the tools of a view in the form of a provider, protocol or framework.
 *
 * Features that the target cannot express are rewritten or removed, with a warning each. A tool that cannot be exposed
 * becomes an error entry; the others are returned. Equal views have equal bytes. The gate still enforces: call with
 * `view.call({ tool: exposure.names.toId(name), input: exposure.toInput(id, input) })`.
 *
 * @throws {ConfigError} for an unknown target
 * @example
 * const exposure = expose(view, 'openai-responses')
 * await client.responses.create({ model, input, ...exposure.request })
 */
export function expose<T extends ExposeTarget>(view: View, target: T, options?: ExposeOptions): Exposure<T>
export function expose<Shape extends object>(
  view: View,
  target: CustomTarget<Shape>,
  options?: ExposeOptions,
): CustomExposure<Shape>
export function expose(
  view: View,
  target: ExposeTarget | CustomTarget,
  options: ExposeOptions = NO_OPTIONS,
): Exposure | CustomExposure<object> {
  checkShape('expose', options, OPTIONS)
  const { name, known, key } = lookUp(target, options)
  if (known.writesInto) return exposeNew(view, name, known, options)
  const fullKey = keyOf(view, key, options)
  let exposure = kept.get(fullKey)
  if (!exposure) kept.set(fullKey, (exposure = exposeNew(view, name, known, options)))
  return exposure
}

interface KnownTarget {
  readonly name: string
  readonly known: Target
  /** Distinguishes two targets of a host with the same name. */
  readonly key: string
}

function lookUp(target: ExposeTarget | CustomTarget, options: ExposeOptions): KnownTarget {
  const isCustom = typeof target === 'object' && target !== null
  const known = isCustom ? customTarget(target) : findTarget(target, options)
  if (!known)
    throw new ConfigError(
      'target',
      isCustom ? 'was not made by defineTarget' : `"${target}" is none of ${EXPOSE_TARGETS.join(', ')}`,
    )
  return isCustom ? { name: target.name, known, key: `#${identify(target)}` } : { name: target, known, key: target }
}

const NO_OPTIONS: ExposeOptions = {}
const OPTIONS = shapeOf<ExposeOptions>({
  mode: true,
  step: true,
  strict: true,
  loaded: true,
  search: true,
  schemas: true,
  provider: true,
  tokenizer: true,
})

function keyOf(view: View, target: string, options: ExposeOptions): string {
  const { mode = 'filter', step, strict, loaded, search, schemas, provider, tokenizer } = options
  const tokens = tokenizer ? identify(tokenizer) : 0
  return `${view.fingerprint} ${target} ${mode} ${step?.fingerprint} ${strict} ${search} ${schemas} ${provider} ${tokens} ${loaded ? JSON.stringify(loaded) : ''}`
}

/** Numbers of the host's own objects, as parts of keys. */
const numbers = new WeakMap<object, number>()
let lastNumber = 0

function identify(one: Tokenizer | CustomTarget): number {
  const known = numbers.get(one)
  if (known !== undefined) return known
  numbers.set(one, ++lastNumber)
  return lastNumber
}

function exposeNew(view: View, name: string, target: Target, options: ExposeOptions): Exposure {
  const warnings: ExposeWarning[] = []
  const mode = settleMode(target, options, warnings)
  if (options.strict && !target.strictDialect)
    warnings.push({ tool: '', path: '', feature: 'strict', from: 'true', action: 'removed' })

  const step = options.step ? new Set(options.step.ids) : undefined
  const shown = mode === 'mask' || !step ? view.tools : view.tools.filter(({ id }) => step.has(id))
  const names = createWireNames(shown, (tool) => (target.toName ? target.toName(toWireName(tool)) : toWireName(tool)))
  const { named, exposed, errors } = convertAll(shown, target, names, { ...options, mode }, warnings)
  const mask = mode === 'mask' ? named.filter(({ id }) => !step || step.has(id)).map((each) => each.name) : undefined
  const definitions = target.writesInto ? structuredClone(named) : named
  const { tools, request } = target.collect(definitions, { mask, deferred: mode === 'defer', options })
  const text = JSON.stringify(tools)
  const bytes = Buffer.byteLength(text)

  return Object.freeze({
    target: name as ExposeTarget,
    mode,
    tools: (target.writesInto ? tools : deepFreeze(tools)) as ExposedTools[ExposeTarget],
    request: target.writesInto ? request : deepFreeze(request),
    names: Object.freeze({
      toId: (wireName: string) => exposed.get(names.toId(wireName) ?? '')?.id,
      toName: (id: string) => (exposed.has(id) ? names.toName(id) : undefined),
    }),
    warnings: Object.freeze(warnings),
    errors: Object.freeze(errors),
    tokens: Object.freeze(countTokens(text, bytes, name, options.tokenizer)),
    bytes,
    toInput: (id: string, input: unknown) => {
      const tool = exposed.get(id)
      const isStrict = options.strict ?? tool?.strict
      return tool && isStrict && target.strictDialect?.allRequired ? withoutNulls(tool, input) : input
    },
  })
}

function settleMode(target: Target, { mode = 'filter' }: ExposeOptions, warnings: ExposeWarning[]): ExposeMode {
  if (mode === 'filter' || (mode === 'mask' && target.canMask) || (mode === 'defer' && target.canDefer)) return mode
  warnings.push({ tool: '', path: '', feature: 'mode', from: mode, to: 'filter', action: 'rewritten' })
  return 'filter'
}

interface All {
  readonly named: readonly (NamedExposed & { readonly id: string })[]
  readonly exposed: ReadonlyMap<string, Tool>
  readonly errors: readonly ExposeError[]
}

/** Converts tools in the order of the view, sorted by id. */
function convertAll(
  tools: readonly Tool[],
  target: Target,
  names: WireNames,
  { mode, strict, loaded = [] }: ExposeOptions,
  warnings: ExposeWarning[],
): All {
  const named: (NamedExposed & { id: string })[] = []
  const exposed = new Map<string, Tool>()
  const errors: ExposeError[] = []
  const always = new Set(loaded)
  for (const tool of tools) {
    const name = names.toName(tool.id)
    const refusal = refuse(tool, target, names, named.length)
    if (refusal || name === undefined) {
      if (refusal) errors.push(refusal)
      continue
    }
    const converted = convert(tool, target, {
      name,
      strict: strict ?? tool.strict ?? false,
      deferred: mode === 'defer' && !always.has(tool.id),
    })
    warnings.push(...converted.warnings)
    if (converted.error) errors.push(converted.error)
    if (!converted.definition) continue
    named.push({ id: tool.id, name, definition: converted.definition })
    exposed.set(tool.id, tool)
  }
  return { named, exposed, errors }
}

function refuse(tool: Tool, target: Target, names: WireNames, count: number): ExposeError | undefined {
  const name = names.toName(tool.id)
  if (name === undefined) {
    const met = names.collisions.find(({ ids }) => ids.includes(tool.id))
    const others = met?.ids.filter((id) => id !== tool.id).map((id) => `"${id}"`) ?? []
    return toError(tool, 'name_collision', '', `has the name ${met?.name} on the wire, as ${others.join(', ')} has`)
  }
  if (target.reserved?.has(name))
    return toError(tool, 'name_reserved', '', `has the name ${name}, which is the provider's own`)
  if (target.maxTools !== undefined && count >= target.maxTools)
    return toError(tool, 'too_many_tools', '', `is beyond the ${target.maxTools} tools that a request may have`)
  return undefined
}
