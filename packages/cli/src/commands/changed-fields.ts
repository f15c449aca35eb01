import { readJson } from '@toolgate/values/json'
import { CliError } from '../exit.ts'

const FIELD = /^([^=]+)=([^]*)$/

/**
 * Returns the changes of an input as a JSON merge patch: `amount=100` and `to.name=Ann`. A value is JSON where it can be read
 * as JSON, and a text otherwise; `null` removes the field.
 */
export function toPatch(changes: readonly string[]): Readonly<Record<string, unknown>> {
  const patch = new Map<string, unknown>()
  for (const change of changes) {
    const [, path = '', value = ''] = FIELD.exec(change) ?? []
    const names = path.split('.')
    if (names.includes(''))
      throw new CliError(
        'usage',
        `--set ${JSON.stringify(change)} must be <field>=<value>, such as amount=100 or to.name=Ann.`,
      )
    setAt(patch, names, valueOf(value))
  }
  return toObject(patch)
}

function valueOf(text: string): unknown {
  try {
    return readJson(text, { integers: 'exact' })
  } catch {
    return text
  }
}

function setAt(patch: Map<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) return void patch.set(name, value)
  const known = patch.get(name)
  const inner = known instanceof Map ? known : new Map<string, unknown>()
  patch.set(name, inner)
  setAt(inner, rest, value)
}

function toObject(patch: ReadonlyMap<string, unknown>): Readonly<Record<string, unknown>> {
  return Object.fromEntries([...patch].map(([name, value]) => [name, value instanceof Map ? toObject(value) : value]))
}
