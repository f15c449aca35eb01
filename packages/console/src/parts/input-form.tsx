import { type ReactElement, useId } from 'react'
import { type Draft, type Field, type Member, ownOf, pointerTo, type Problems } from '../input-form.ts'
import { Exact } from './exact.tsx'

interface InputFieldsProps {
  readonly field: Field
  readonly draft: Draft
  readonly change: (draft: Draft) => void
  /** The problems of the typed input, and those that the gateway found. */
  readonly problems: Problems
}

/** Shows the fields of an input, each with its problem beside it. A server chooses the names and texts. */
export function InputFields({ field, draft, change, problems }: InputFieldsProps): ReactElement {
  const shared = { draft, change, problems, pointer: '' }
  if (field.kind !== 'object') return <Control {...shared} field={field} label="Input, as JSON" isRequired />
  if (field.members.length === 0) return <p className="dim">It takes no input.</p>
  return <Members {...shared} members={field.members} />
}

interface PlacedProps extends Omit<InputFieldsProps, 'field'> {
  readonly pointer: string
}

function Members({ members, draft, change, ...placed }: PlacedProps & { members: readonly Member[] }): ReactElement {
  return (
    <div className="stack loose input-fields">
      {members.map(({ name, title, description, isRequired, field }) => (
        <Control
          key={name}
          field={field}
          label={name}
          title={title}
          description={description}
          isRequired={isRequired}
          draft={ownOf(draft, name)}
          change={(next) => change(withOwn(draft, name, next))}
          problems={placed.problems}
          pointer={pointerTo(placed.pointer, name)}
        />
      ))}
    </div>
  )
}

interface ControlProps extends PlacedProps {
  readonly field: Field
  readonly label: string
  readonly title?: string
  readonly description?: string
  readonly isRequired: boolean
}

function Control(props: ControlProps): ReactElement {
  const { field, label, title = '', description = '', isRequired, pointer, problems } = props
  const id = useId()
  const problem = problems.get(pointer) ?? ''
  const about = (
    <>
      {(title !== '' || description !== '') && (
        <p id={`${id}-about`} className="dim sub clamped">
          <Exact text={[title, description].filter(Boolean).join(': ')} />
        </p>
      )}
      {problem !== '' && (
        <p id={`${id}-problem`} className="problem">
          <Exact text={problem} />
        </p>
      )}
    </>
  )
  const name = (
    <>
      <Exact text={label} className="id" />
      {!isRequired && <span className="dim"> optional</span>}
    </>
  )
  if (field.kind === 'object' || field.kind === 'list')
    return (
      <fieldset className="stack input-group">
        <legend>{name}</legend>
        {about}
        {field.kind === 'object' ? (
          <Members {...props} members={field.members} />
        ) : (
          <Items {...props} item={field.item} label={label} />
        )}
      </fieldset>
    )
  return (
    <div className="field">
      <label htmlFor={id}>{name}</label>
      <Simple
        {...props}
        id={id}
        described={{ 'aria-describedby': `${id}-about ${id}-problem`, 'aria-invalid': problem !== '' }}
      />
      {about}
    </div>
  )
}

interface SimpleProps extends ControlProps {
  readonly id: string
  readonly described: { readonly 'aria-describedby': string; readonly 'aria-invalid': boolean }
}

function Simple({ field, draft, change, isRequired, id, described }: SimpleProps): ReactElement {
  const value = typeof draft === 'string' ? draft : ''
  const shared = { id, value, ...described, 'aria-required': isRequired }
  const onChange = ({ target }: { target: { value: string } }): void => change(target.value)
  if (field.kind === 'choice' || field.kind === 'flag') {
    const options: readonly (readonly [string, string])[] =
      field.kind === 'choice' ? field.values.map((one, i) => [String(i), wordOf(one)]) : FLAGS
    return (
      <select {...shared} onChange={onChange}>
        <option value="">not set</option>
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    )
  }
  const isLong = field.kind === 'text' || field.kind === 'json'
  if (isLong)
    return (
      <textarea
        {...shared}
        onChange={onChange}
        rows={field.kind === 'json' ? 3 : 1}
        className={field.kind === 'json' ? 'code' : undefined}
        spellCheck={false}
        placeholder={field.kind === 'json' ? 'JSON' : undefined}
      />
    )
  return <input {...shared} onChange={onChange} inputMode="decimal" autoComplete="off" />
}

const FLAGS = [
  ['true', 'true'],
  ['false', 'false'],
] as const

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function Items({
  item,
  draft,
  change,
  label,
  problems,
  pointer,
}: PlacedProps & { item: Field; label: string }): ReactElement {
  const items = Array.isArray(draft) ? (draft as readonly Draft[]) : []
  return (
    <div className="stack loose input-fields">
      {items.map((one, i) => (
        // The items have no other id, and are only added and removed.
        <div key={i} className="input-item">
          <Control
            field={item}
            label={`${label} ${i + 1}`}
            isRequired
            draft={one}
            change={(next) => change(items.with(i, next))}
            problems={problems}
            pointer={pointerTo(pointer, i)}
          />
          <button type="button" className="quiet" onClick={() => change(items.toSpliced(i, 1))}>
            Remove
            <span className="unseen">
              {' '}
              {label} {i + 1}
            </span>
          </button>
        </div>
      ))}
      <button type="button" onClick={() => change([...items, undefined])}>
        Add<span className="unseen"> to {label}</span>
      </button>
    </div>
  )
}

/** Sets an own property, even if its name is `__proto__`. */
function withOwn(draft: Draft, name: string, next: Draft): Draft {
  const before = typeof draft === 'object' && !Array.isArray(draft) ? Object.entries(draft) : []
  return Object.fromEntries([...before.filter(([key]) => key !== name), [name, next]])
}
