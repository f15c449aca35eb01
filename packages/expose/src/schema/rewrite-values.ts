import { takes } from './dialect.ts'
import type { At, SchemaDraft, Writer } from './draft.ts'
import { typeOf } from './keywords.ts'
import { below, isObject, toText, wordOf } from './node.ts'

export function constToEnum(draft: SchemaDraft, { dialect, note }: Writer, at: At): void {
  if (!draft.words.has('const') || takes(dialect, 'const', at.root) || !takes(dialect, 'enum', at.root)) return
  const value = draft.words.get('const')
  draft.words.delete('const')
  draft.words.set('enum', [value])
  note({
    path: below(draft.pointer, 'const'),
    feature: 'const',
    from: toText(value),
    to: `enum: ${toText([value])}`,
    action: 'rewritten',
  })
}

/** `x > 5` becomes `x >= 6` for integers. For other numbers the bound itself is allowed. */
export function exclusiveBounds(draft: SchemaDraft, { dialect, note }: Writer, at: At): void {
  for (const [keyword, bound, step] of [
    ['exclusiveMinimum', 'minimum', 1],
    ['exclusiveMaximum', 'maximum', -1],
  ] as const) {
    const value = wordOf(draft, keyword)
    if (value === undefined || takes(dialect, keyword, at.root) || !takes(dialect, bound, at.root)) continue
    const types = wordOf(draft, 'type')
    const integer = types?.includes('integer') && !types.includes('number')
    const inclusive = !integer
      ? value
      : Number.isInteger(value)
        ? value + step
        : step > 0
          ? Math.ceil(value)
          : Math.floor(value)
    const other = wordOf(draft, bound)
    const met = other === undefined ? inclusive : step > 0 ? Math.max(other, inclusive) : Math.min(other, inclusive)
    draft.words.delete(keyword)
    draft.words.set(bound, met)
    note({
      path: below(draft.pointer, keyword),
      feature: keyword,
      from: toText(value),
      to: `${bound}: ${toText(met)}`,
      action: 'rewritten',
    })
  }
}

/** Keeps the values of `enum` and `const` that the target can list and the type allows. */
export function listedValues(draft: SchemaDraft, writer: Writer): void {
  const { dialect } = writer
  if (!dialect.enums) return
  for (const keyword of ['enum', 'const'] as const) {
    if (!draft.words.has(keyword)) continue
    const word = draft.words.get(keyword)
    const values = keyword === 'const' ? [word] : (wordOf(draft, 'enum') ?? [])
    const types = wordOf(draft, 'type')
    const possible = types ? values.filter((value) => types.some((type) => isOfType(value, type))) : values
    const scalar = possible.length > 0 && possible.every((value) => !isObject(value) && !Array.isArray(value))
    if (!scalar) {
      writer.describe(draft, keyword, word)
      continue
    }
    if (keyword === 'enum') draft.words.set('enum', possible)
    const listed = [...new Set(possible.map(typeOf))]
    if (dialect.untypedEnums) draft.words.delete('type')
    else if (!types || types.length > listed.length) draft.words.set('type', listed)
    if (dialect.enums === 'texts') enumOfTexts(draft, writer, possible)
  }
}

function isOfType(value: unknown, type: string): boolean {
  return type === 'integer' ? Number.isInteger(value) : typeOf(value) === type
}

/** OpenAPI lists numbers as texts, with the format `enum`, and has null elsewhere. */
function enumOfTexts(draft: SchemaDraft, writer: Writer, values: readonly unknown[]): void {
  const listed = values.filter((value) => value !== null)
  const types = new Set(listed.map(typeOf))
  if (listed.length === 0) draft.words.delete('enum')
  else if (types.size > 1 || types.has('boolean')) writer.describe(draft, 'enum', values)
  else draft.words.set('enum', listed.map(String))
  if (types.has('number') && types.size === 1) {
    draft.words.set('format', 'enum')
    writer.note({
      path: below(draft.pointer, 'enum'),
      feature: 'enum',
      from: toText(values),
      to: toText(listed.map(String)),
      action: 'rewritten',
    })
  }
}

export function narrowValues(draft: SchemaDraft, writer: Writer): void {
  const { formats, minItems } = writer.dialect
  const format = wordOf(draft, 'format')
  if (formats && format !== undefined && !formats.has(format)) writer.describe(draft, 'format', format)
  const least = wordOf(draft, 'minItems')
  if (minItems && least !== undefined && !minItems.has(least)) writer.describe(draft, 'minItems', least)
}
