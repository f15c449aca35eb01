import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useMemo, useState } from 'react'
import { linkTo } from '../address.ts'
import { useCallers } from '../callers.ts'
import { type ApiError, postJson } from '../api.ts'
import { type Draft, type Field, type Problems, readJson, toField, toInput } from '../input-form.ts'
import type { AgentCallBody, Reason, ToolRow, TrialRequestBody, WhyInputBody, WhyRequestBody } from '../wire.ts'
import { Badge } from './badges.tsx'
import { type DryRunView, DryRuns } from './dry-runs.tsx'
import { Exact, JsonBlock } from './exact.tsx'
import { DialogButton, DialogButtons, Field as LabelledField, Problem } from './form.tsx'
import { HistoryField } from './history-field.tsx'
import { InputFields } from './input-form.tsx'
import { writeDigits } from '../digits.ts'

/** The number of dry runs that stay on the page, to compare inputs. */
const KEPT_RUNS = 5
/** The longest wait for a call, in milliseconds. Its server limits the time. */
const CALL_TIMEOUT_MS = 10 * 60_000

interface PlaygroundProps {
  readonly tool: ToolRow
  readonly inputSchema: unknown
  readonly whose: Readonly<Record<string, string>>
}

/** Shows the decision about a call with an input, and makes the call as an agent of one's own user. */
export function Playground({ tool, inputSchema, whose }: PlaygroundProps): ReactElement {
  const typed = useTyped(tool, inputSchema)
  const { text, field, shown } = typed
  const [asked, setAsked] = useState<TrialRequestBody>()
  const [history, setHistory] = useState('')
  const { runs, ask, isPending, error } = useDryRuns(typed.setShown)
  const historyProblem = error?.startsWith('history:') ? error : undefined

  /** Returns the call in the form, or `undefined` if the input is invalid, after showing the problems. */
  function readCall(): TrialRequestBody | undefined {
    const { input, problems } = typed.read()
    typed.setShown(problems)
    return problems.size > 0 ? undefined : toCall(tool, whose, input)
  }
  return (
    <form
      className="stack loose playground"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        const call = readCall()
        if (call) ask({ ...call, ...(history.trim() !== '' && { history }) })
      }}
    >
      {text === undefined ? (
        <InputFields field={field} draft={typed.draft} change={typed.setDraft} problems={shown} />
      ) : (
        <JsonInput text={text} change={typed.setText} shown={shown} />
      )}
      <p id={PROBLEM} className="problem" role="alert">
        {text !== undefined && <Exact text={[...shown.values()][0] ?? ''} />}
        {text === undefined && field.kind === 'object' && <Exact text={shown.get('') ?? ''} />}
      </p>
      <HistoryField text={history} change={setHistory} problem={historyProblem} />
      <div className="row actions">
        <button type="submit" className="main" aria-disabled={isPending}>
          Dry run
        </button>
        <RealCall
          tool={tool}
          whose={whose}
          prepare={() => setAsked(readCall())}
          asked={asked}
          done={() => setAsked(undefined)}
        />
        {field.kind === 'object' && (
          <button type="button" className="quiet" aria-pressed={text !== undefined} onClick={typed.turn}>
            Edit as JSON
          </button>
        )}
      </div>
      <Problem text={historyProblem === undefined ? error : undefined} />
      <DryRuns runs={runs} />
    </form>
  )
}

/** The typed input: in fields, or as JSON while `text` is set. */
function useTyped(tool: ToolRow, inputSchema: unknown) {
  const field = useMemo(() => fieldOf(tool, inputSchema), [tool.kind, inputSchema])
  const [draft, setDraft] = useState<Draft>(() => (tool.kind === 'template' ? { uri: tool.wireName } : undefined))
  const [text, setText] = useState<string>()
  const [shown, setShown] = useState<Problems>(NONE)
  return {
    field,
    draft,
    setDraft,
    text,
    setText,
    /** The problems that are shown beside the fields. */
    shown,
    setShown,
    read: () => (text === undefined ? toInput(field, draft) : fromText(text)),
    /** Switches from the fields to JSON, or back. */
    turn(): void {
      setText(text === undefined ? writeDigits(toInput(field, draft).input, 2) : undefined)
      setShown(NONE)
    },
  }
}

function useDryRuns(show: (problems: Problems) => void) {
  const [runs, setRuns] = useState<readonly DryRunView[]>([])
  const { mutate, isPending, error } = useMutation<WhyInputBody, ApiError, WhyRequestBody>({
    mutationFn: (body) => postJson('/api/why', body),
    onSuccess: (body, { input, history: stated }) => {
      const run: DryRunView = { input, body, ...(typeof stated === 'string' && { history: stated }) }
      setRuns((before) => [run, ...before].slice(0, KEPT_RUNS))
      show(problemsOf(body.reasons))
    },
  })
  return { runs, ask: mutate, isPending, error: error?.message }
}

function toCall(tool: ToolRow, whose: PlaygroundProps['whose'], input: unknown): TrialRequestBody {
  const { as = '', caller = '', app = '' } = whose
  return {
    tool: tool.kind === 'template' ? `${tool.id.split(':', 2).join(':')}:${uriOf(input)}` : tool.id,
    ...(caller === '' ? { as } : { caller }),
    ...(app === '' ? {} : { app }),
    input: input as object as TrialRequestBody['input'] & {},
  }
}

/** The id of the problem. A page has one playground. */
const PROBLEM = 'playground-problem'

interface JsonInputProps {
  readonly text: string
  readonly change: (text: string) => void
  readonly shown: Problems
}

function JsonInput({ text, change, shown }: JsonInputProps): ReactElement {
  return (
    <LabelledField label="Input, as JSON">
      {(id) => (
        <textarea
          id={id}
          className="code"
          rows={8}
          spellCheck={false}
          value={text}
          aria-invalid={shown.has('')}
          aria-describedby={PROBLEM}
          onChange={(event) => change(event.target.value)}
        />
      )}
    </LabelledField>
  )
}

const NONE: Problems = new Map()

/** Returns the field of the input. The field of a resource is empty, because the id contains the URI. */
function fieldOf({ kind }: ToolRow, schema: unknown): Field {
  if (kind === 'resource') return { kind: 'object', members: [] }
  if (kind !== 'template') return toField(schema)
  const uri = { name: 'uri', title: '', description: 'With its parameters filled in.', isRequired: true }
  return { kind: 'object', members: [{ ...uri, field: { kind: 'text' } }] }
}

function uriOf(input: unknown): string {
  const { uri } = input as { readonly uri?: unknown }
  return typeof uri === 'string' ? uri : ''
}

function fromText(text: string): ReturnType<typeof toInput> {
  const read = readJson(text)
  if ('problem' in read) return { input: undefined, problems: new Map([['', read.problem]]) }
  const { value } = read
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return { input: value, problems: isObject ? NONE : new Map([['', 'The input must be a JSON object.']]) }
}

/** Returns the problems that the gateway found in the input. */
function problemsOf(reasons: readonly Reason[]): Problems {
  return new Map(
    reasons.flatMap(({ code, pointer, text }) => (code === 'input_invalid' ? [[pointer ?? '', text] as const] : [])),
  )
}

interface RealCallProps extends Pick<PlaygroundProps, 'tool' | 'whose'> {
  /** Reads the form. */
  readonly prepare: () => void
  readonly asked: TrialRequestBody | undefined
  readonly done: () => void
}

/** Makes the call after a confirmation. It is offered only for an agent of one's own user, as the gateway decides. */
function RealCall({ tool, whose, prepare, asked, done }: RealCallProps): ReactElement {
  const client = useQueryClient()
  const own = (useCallers({ own: 'true', limit: 50 }).data?.callers ?? []).filter(({ mayCall }) => mayCall === true)
  const call = useMutation<AgentCallBody, ApiError, TrialRequestBody>({
    mutationFn: (body) => postJson('/api/tool/call', body, { timeoutMs: CALL_TIMEOUT_MS }),
    onSettled: () => client.invalidateQueries({ queryKey: ['audit'] }),
  })
  if (!own.some(({ user }) => user === whose['as']))
    return (
      <p className="dim real-call-note">
        {own.length === 0 ? (
          'A real call takes the role operator or approver, and an agent’s key of your own user.'
        ) : (
          <>
            You can call it as one of your own agents only:{' '}
            {own.slice(0, 3).map(({ user }) => (
              <a key={user} href={linkTo('tool', { ...whose, id: tool.id, as: user, caller: '' })}>
                see as <Exact text={user} />
              </a>
            ))}
          </>
        )}
      </p>
    )
  return (
    <DialogButton
      label="Call it…"
      onOpen={() => {
        call.reset()
        prepare()
      }}
      onClose={done}
      title={`Call ${tool.kind === 'tool' ? 'the tool' : `the ${tool.kind}`}`}
    >
      {(close) => (
        <div className="dialog-body">
          {asked ? (
            <>
              <p>
                This runs <Exact text={asked.tool} className="id" /> now, as{' '}
                <Exact text={whose['as'] ?? ''} className="strong" />. Every rule and limit holds, and the audit has
                your name.
              </p>
              <JsonBlock value={asked.input} label="The input" />
            </>
          ) : (
            <p className="problem">The input has mistakes. They stand beside the fields.</p>
          )}
          <div role="status">{call.data && <Result body={call.data} />}</div>
          <Problem text={call.error?.message} />
          <DialogButtons cancel={call.data || !asked ? 'Close' : 'Cancel'} close={close}>
            {asked && !call.data && (
              <button type="button" className="main" disabled={call.isPending} onClick={() => call.mutate(asked)}>
                {call.isPending ? 'Running…' : 'Call it now'}
              </button>
            )}
          </DialogButtons>
        </div>
      )}
    </DialogButton>
  )
}

function Result({ body }: { body: AgentCallBody }): ReactElement {
  const calls = linkTo('live', { call: body.callId })
  return (
    <div className="stack loose dry-run">
      <p className="row">
        <Badge
          word={body.status === 'done' && body.isError ? 'error' : body.status}
          look={body.status === 'done' && !body.isError ? 'good' : 'bad'}
        />
        <a href={calls}>Its records</a>
        {body.status === 'waiting' && <a href={linkTo('approvals')}>A person must approve it</a>}
      </p>
      {body.status === 'done' ? (
        <JsonBlock value={body.result} label="The result" />
      ) : (
        <p>
          <Exact text={body.text} />
        </p>
      )}
    </div>
  )
}
