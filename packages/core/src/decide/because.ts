import { UNTRUSTED } from '../history/facts.ts'
import type { FactRead } from '../ports/fact-read.ts'

/** Returns the caller's name of a tool; `undefined` for a tool that they cannot see. */
export type NameOf = (id: string) => string | undefined

/**
 * Returns the facts that counted against a call as a sentence for a model: `This run has read web:fetch, whose output is
 * untrusted.`
 *
 * Names only tools that the caller can see.
 */
export function because(read: readonly FactRead[], nameOf: NameOf | undefined): string {
  const parts = [...new Set(read.map((one) => SENTENCES[one.kind](one, namesOf(one, nameOf))))]
  const text = parts.join(', and ')
  return text === '' ? '' : `${text[0]?.toUpperCase()}${text.slice(1)}.`
}

/** Returns advice for the model about these facts. */
export function adviceOn(read: readonly FactRead[]): string {
  const isMissing = read.some(({ kind }) => kind === 'called')
  return isMissing ? 'Make that call first, or ask the user.' : 'Ask the user, or continue without it.'
}

function namesOf({ tools = [] }: FactRead, nameOf: NameOf | undefined): string {
  return tools.flatMap((id) => nameOf?.(id) ?? []).join(', ')
}

const SENTENCES: { readonly [Kind in FactRead['kind']]: (read: FactRead, names: string) => string } = {
  label: ({ of }, names) =>
    `this run has read ${names === '' ? 'something' : `${names},`} whose output is ${of === UNTRUSTED ? of : `labelled ${of}`}`,
  called: (read, names) => `this run has no successful call of ${names === '' ? 'another tool' : names}${sameOf(read)}`,
  began: (read, names) => `this run has already called ${names === '' ? 'it or another tool' : names}${sameOf(read)}`,
  origin: ({ of, origin }) => {
    const value =
      of === 'addressees' ? 'the addressee' : of.startsWith('input.') ? `the value of ${of.slice(6)}` : 'a value'
    return origin === UNTRUSTED
      ? `${value} may come from untrusted output`
      : `${value} comes neither from the user nor from a trusted tool`
  },
}

/** The fields are those of the earlier call. */
function sameOf({ fields = [] }: FactRead): string {
  const [input, output] = ['input.', 'output.'].map((start) =>
    fields.flatMap((field) => (field.startsWith(start) ? [field.slice(start.length)] : [])).join(', '),
  )
  return [input && ` with this ${input}`, output && `${input ? ' and' : ' with'} the required ${output} in its result`]
    .filter(Boolean)
    .join('')
}
