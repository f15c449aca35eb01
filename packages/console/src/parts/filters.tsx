import type { ReactElement, ReactNode } from 'react'
import { choose, useChoices } from '../hooks.ts'
import { Field, Select } from './form.tsx'
import { Empty } from './panels.tsx'

/** Names of choices in the address. */
type ChoiceNames = readonly string[]

/** Returns whether one of the choices is set. */
export function useIsFiltered(names: ChoiceNames): boolean {
  const of = useChoices()
  return names.some((name) => of(name) !== '')
}

/** Shows filters of a list, with a button that removes all of them. */
export function FilterBar({ names, children }: { names: ChoiceNames; children: ReactNode }): ReactElement {
  return (
    <div className="toolbar">
      {children}
      {useIsFiltered(names) && <Clear names={names} className="quiet" text="Clear" />}
    </div>
  )
}

/** Shown in place of a list if a filter leaves it empty. */
export function NoMatch({ title, names }: { title: string; names: ChoiceNames }): ReactElement {
  return (
    <Empty title={title}>
      <Clear names={names} text="Clear the filter" />
    </Empty>
  )
}

function Clear({ names, className, text }: { names: ChoiceNames; className?: string; text: string }): ReactElement {
  return (
    <button
      type="button"
      className={className}
      onClick={() => choose(Object.fromEntries(names.map((name) => [name, ''])))}
    >
      {text}
    </button>
  )
}

interface OneOfProps {
  /** The name of the choice in the address. */
  readonly name: string
  readonly label: string
  readonly every: string
  readonly values: readonly string[]
  /** Returns the choices that a value makes meaningless. They are cleared. */
  readonly clears?: (value: string) => ChoiceNames
}

/** A filter with a few fixed values. */
export function OneOf({ name, label, every, values, clears = () => [] }: OneOfProps): ReactElement {
  const value = useChoices()(name)
  const unknown = value !== '' && !values.includes(value) ? [value] : []
  return (
    <Select
      label={label}
      options={[['', every], ...unknown, ...values]}
      value={value}
      apply={(to) => choose({ ...Object.fromEntries(clears(to).map((one) => [one, ''])), [name]: to })}
    />
  )
}

interface ChipProps {
  /** The value of the choice `show`. Empty: all. */
  readonly value: string
  readonly word: string
  readonly n: ReactNode
  /** The outcome whose colour the number has. */
  readonly look?: string
}

/** A button that filters a list, with the number of matching items. A second press shows all items again. */
export function Chip({ value, word, n, look = '' }: ChipProps): ReactElement {
  const isChosen = useChoices()('show') === value
  return (
    <button
      type="button"
      className={`chip ${look}`.trim()}
      aria-pressed={isChosen}
      onClick={() => choose({ show: isChosen ? '' : value })}
    >
      {word} <span className="n">{n}</span>
    </button>
  )
}

interface SegmentedProps<Value extends string> {
  readonly label: string
  readonly options: readonly (readonly [value: Value, text: string])[]
  readonly value: string
  readonly apply: (value: Value) => void
}

/** A choice of a few values, which are all visible. */
export function Segmented<Value extends string>(props: SegmentedProps<Value>): ReactElement {
  const { label, options, value, apply } = props
  return (
    <div className="segmented" role="group" aria-label={label}>
      {options.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={name === value} onClick={() => apply(name)}>
          {text}
        </button>
      ))}
    </div>
  )
}

/** A search field for a list. It filters the list as the user types. */
export function SearchField({ name, example }: { name: string; example: string }): ReactElement {
  const value = useChoices()(name)
  return (
    <Field label="Search" isGrowing>
      {(id) => (
        <input
          id={id}
          {...SEARCH}
          value={value}
          placeholder={example}
          onChange={(event) => choose({ [name]: event.target.value })}
        />
      )}
    </Field>
  )
}

const SEARCH = { type: 'search', maxLength: 256, spellCheck: false, autoComplete: 'off' } as const
