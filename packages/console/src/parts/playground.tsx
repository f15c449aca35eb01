import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useId, useMemo, useRef, useState } from 'react'
import { linkTo } from '../address.ts'
import { type ApiError, postJson } from '../api.ts'
import { type Draft, type Field, type Problems, readJson, toField, toInput } from '../input-form.ts'
import type {
  AgentCallBody,
  CallersBody,
  Reason,
  ToolRow,
  TrialRequestBody,
  WhyInputBody,
  WhyRequestBody,
} from '../wire.ts'
import { type DryRun, DryRuns } from './dry-runs.tsx'
import { Exact, JsonBlock } from './exact.tsx'
import { HistoryField } from './history-field.tsx'
import { InputFields } from './input-form.tsx'
import { writeDigits } from '../digits.ts'

/** Dry runs that stay on the page, to compare inputs. */
const KEPT_RUNS = 5
/** A call may take as long as its server lets it. */
const CALL_TIMEOUT_MS = 10 * 60_000

export interface PlaygroundProps {
  readonly tool: ToolRow
  readonly inputSchema: unknown
  readonly whose: Readonly<Record<string, string>>
  readonly callers: CallersBody['callers']
}

/** Says what a call would get with an input, and makes it as an agent of one's own user. */
export function Playground({ tool, inputSchema, whose, callers }: PlaygroundProps): ReactElement {
  const id = useId()
  const field = useMemo(() => fieldOf(tool, inputSchema), [tool.kind, inputSchema])
  const [draft, setDraft] = useState<Draft>(() => (tool.kind === 'template' ? { uri: tool.wireName } : undefined))
  const [text, setText] = useState<string>()
  const [shown, setShown] = useState<Problems>(NONE)
  const [runs, setRuns] = useState<readonly DryRun[]>([])
  const [asked, setAsked] = useState<TrialRequestBody>()
  const [history, setHistory] = useState('')
  const dryRun = useMutation<WhyInputBody, ApiError, WhyRequestBody>({
    mutationFn: (body) => postJson('/api/why', body),
    onSuccess: (body, { input, history: stated }) => {
      const run: DryRun = { input, body, ...(typeof stated === 'string' && { history: stated }) }
      setRuns((before) => [run, ...before].slice(0, KEPT_RUNS))
      setShown(problemsOf(body.reasons))
    },
  })
  const isJson = text !== undefined
  const historyProblem = dryRun.error?.message.startsWith('history:') ? dryRun.error.message : undefined

  /** Returns the call of what is typed; `undefined`, with the problems shown, where that is no input. */
  function readCall(): TrialRequestBody | undefined {
    const { input, problems } = isJson ? fromText(text) : toInput(field, draft)
    setShown(problems)
    if (problems.size > 0) return undefined
    const { as = '', caller = '', app = '' } = whose
    const target = tool.kind === 'template' ? `${tool.id.split(':', 2).join(':')}:${uriOf(input)}` : tool.id
    const who = caller === '' ? { as } : { caller }
    return {
      tool: target,
      ...who,
      ...(app === '' ? {} : { app }),
      input: input as object as TrialRequestBody['input'] & {},
    }
  }
  return (
    <form
      className="playground"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        const call = readCall()
        if (call) dryRun.mutate({ ...call, ...(history.trim() !== '' && { history }) })
      }}
    >
      {isJson ? (
        <div className="field">
          <label htmlFor={id}>Input, as JSON</label>
          <textarea
            id={id}
            className="code"
            rows={8}
            spellCheck={false}
            value={text}
            aria-invalid={shown.has('')}
            aria-describedby={`${id}-problem`}
            onChange={(event) => setText(event.target.value)}
          />
        </div>
      ) : (
        <InputFields field={field} draft={draft} change={setDraft} problems={shown} />
      )}
      <p id={`${id}-problem`} className="problem" role="alert">
        {(isJson || field.kind === 'object') && (
          <Exact text={(isJson ? [...shown.values()][0] : shown.get('')) ?? ''} />
        )}
      </p>
      <HistoryField text={history} change={setHistory} problem={historyProblem} />
      <div className="playground-buttons">
        <button type="submit" className="main" aria-disabled={dryRun.isPending}>
          Dry run
        </button>
        <RealCall
          tool={tool}
          whose={whose}
          callers={callers}
          prepare={() => setAsked(readCall())}
          asked={asked}
          done={() => setAsked(undefined)}
        />
        {field.kind === 'object' && (
          <button
            type="button"
            className="quiet"
            aria-pressed={isJson}
            onClick={() => {
              setText(isJson ? undefined : writeDigits(toInput(field, draft).input, 2))
              setShown(NONE)
            }}
          >
            Edit as JSON
          </button>
        )}
      </div>
      {dryRun.error && historyProblem === undefined && (
        <p className="problem" role="alert">
          <Exact text={dryRun.error.message} />
        </p>
      )}
      <DryRuns runs={runs} />
    </form>
  )
}

const NONE: Problems = new Map()

/** A resource is read by its URI, which its id has. */
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

/** Returns what the gateway has found in the input. */
function problemsOf(reasons: readonly Reason[]): Problems {
  return new Map(
    reasons.flatMap(({ code, pointer, text }) => (code === 'input_invalid' ? [[pointer ?? '', text] as const] : [])),
  )
}

interface RealCallProps extends Pick<PlaygroundProps, 'tool' | 'whose' | 'callers'> {
  /** Reads the form. */
  readonly prepare: () => void
  readonly asked: TrialRequestBody | undefined
  readonly done: () => void
}

/** Makes the call after a confirmation. Offered only for an agent of one's own user, as the gateway says. */
function RealCall({ tool, whose, callers, prepare, asked, done }: RealCallProps): ReactElement {
  const id = useId()
  const client = useQueryClient()
  const dialog = useRef<HTMLDialogElement>(null)
  const own = callers.filter(({ mayCall }) => mayCall === true)
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
    <>
      <button
        type="button"
        onClick={() => {
          call.reset()
          prepare()
          dialog.current?.showModal()
        }}
      >
        Call it…
      </button>
      <dialog ref={dialog} className="form-dialog call-dialog" aria-labelledby={`${id}-title`} onClose={done}>
        <h2 id={`${id}-title`}>Call {tool.kind === 'tool' ? 'the tool' : `the ${tool.kind}`}</h2>
        {asked ? (
          <>
            <p>
              This runs <Exact text={asked.tool} className="id" /> now, as{' '}
              <Exact text={whose['as'] ?? ''} className="strong" />. Every rule and limit holds, and the audit has your
              name.
            </p>
            <JsonBlock value={asked.input} label="The input" />
          </>
        ) : (
          <p className="problem">The input has mistakes. They stand beside the fields.</p>
        )}
        <div role="status">{call.data && <Result body={call.data} />}</div>
        {call.error && (
          <p className="problem" role="alert">
            <Exact text={call.error.message} />
          </p>
        )}
        <div className="form-buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {call.data || !asked ? 'Close' : 'Cancel'}
          </button>
          {asked && !call.data && (
            <button type="button" className="main" disabled={call.isPending} onClick={() => call.mutate(asked)}>
              {call.isPending ? 'Running…' : 'Call it now'}
            </button>
          )}
        </div>
      </dialog>
    </>
  )
}

function Result({ body }: { body: AgentCallBody }): ReactElement {
  const calls = linkTo('live', { call: body.callId })
  return (
    <div className="dry-run">
      <p className="badges">
        <span className={`badge ${body.status === 'done' && !body.isError ? 'allow' : 'deny'}`}>
          {body.status === 'done' && body.isError ? 'error' : body.status}
        </span>
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
