import { type ReactElement, useContext, useMemo, useState } from 'react'
import { count } from '../format.ts'
import { choose, useApi, useChoices } from '../hooks.ts'
import { mayManageKeys } from '../keys.ts'
import { Phrase } from '../parts/exact.tsx'
import { readDraft } from '../policy-draft.ts'
import { Chip, Segmented } from '../parts/filters.tsx'
import { Restored } from '../parts/go-back.tsx'
import { Empty, PageHead, Pending } from '../parts/panels.tsx'
import { ClauseNote } from '../parts/policy-clause.tsx'
import { PolicyEditor } from '../parts/policy-editor.tsx'
import { PolicyText } from '../parts/policy-text.tsx'
import { Revisions } from '../parts/revisions.tsx'
import { isShown, notesOn, SHOWN, toLines, toUnplaced, WORDS } from '../policy.ts'
import { Session } from '../session.ts'
import type { ClauseRow, PolicyBody } from '../wire.ts'

const REFRESH_MS = 5000
const VIEWS = [
  ['', 'In force'],
  ['revisions', 'Revisions'],
] as const

/** Shows the policy in force: its text, the matches of each clause, and the effect of another text. */
export function PolicyPage(): ReactElement {
  const session = useContext(Session)
  const answer = useApi<PolicyBody>({ key: ['policy'], path: '/api/policy', everyMs: REFRESH_MS })
  const { data } = answer
  const [isEdited, setEdited] = useState(false)
  const [wasEdited, setWasEdited] = useState(false)
  const draft = readDraft(session?.user ?? '')
  const hasDraft = draft !== undefined && draft.text !== data?.text
  const isOfAll = session?.tenant === undefined
  const isList = useChoices()('view') === 'revisions' && isOfAll
  const mayEdit = session !== undefined && mayManageKeys(session) && data?.text !== undefined
  return (
    <>
      <PageHead title="Policy" about={data && <Source body={data} />}>
        {mayEdit && !isEdited && !isList && data.isRedacted !== true && (
          <>
            {hasDraft && <p className="end">You have a draft that is not in force.</p>}
            <button
              type="button"
              className={hasDraft ? 'main' : 'end'}
              // The editor had the focus, and is gone.
              autoFocus={wasEdited}
              onClick={() => setEdited(true)}
            >
              {hasDraft ? 'Continue the draft' : 'Edit'}
            </button>
          </>
        )}
        {mayEdit && data.isRedacted && <p>Some of it is redacted, so it can be changed in the file only.</p>}
      </PageHead>
      {isOfAll && <Restored />}
      {isOfAll && !isEdited && (
        <Segmented
          label="View"
          options={VIEWS}
          value={isList ? 'revisions' : ''}
          apply={(view) => choose({ view, revision: '' })}
        />
      )}
      {!isList && <Pending answer={answer} what="the policy" />}
      {isList && !isEdited && <Revisions />}
      {data && isEdited && session && (
        <PolicyEditor
          body={data}
          user={session.user}
          close={() => {
            setEdited(false)
            setWasEdited(true)
          }}
        />
      )}
      {data && !isEdited && !isList && (isOfAll ? <InForce body={data} /> : <OfAllTenants />)}
    </>
  )
}

function Source({ body: { file, revision } }: { body: PolicyBody }): ReactElement {
  return (
    <>
      <Phrase text={file} after=", " className="id" />
      revision {revision}
    </>
  )
}

function OfAllTenants(): ReactElement {
  return (
    <Empty title="Not shown">
      <p>The policy and its counts are of all tenants. People without a tenant see them.</p>
    </Empty>
  )
}

function InForce({ body }: { body: PolicyBody }): ReactElement {
  const of = useChoices()
  const show = of('show')
  const lines = useMemo(() => toLines(body), [body])
  const unplaced = useMemo(() => toUnplaced(body, lines), [body, lines])
  const narrowed = useMemo(
    () => (show === '' ? lines : lines.filter(({ clauses }) => clauses.some((one) => isShown(show, one)))),
    [lines, show],
  )
  const others = unplaced.filter((one) => isShown(show, one))
  if (body.clauses.length === 0 && lines.length === 0)
    return (
      <Empty title="No policy">
        <p>Every caller may use every tool.</p>
      </Empty>
    )
  return (
    <>
      <div className="toolbar" role="group" aria-label="Clauses">
        <Chip value="" word="All" n={body.clauses.length} />
        {SHOWN.map((name) => (
          <Chip
            key={name}
            value={name}
            word={WORDS[name]}
            n={body.clauses.filter((one) => isShown(name, one)).length}
            look={name === 'unmatched' ? 'deny' : ''}
          />
        ))}
      </div>
      {notesOn(body).map((note) => (
        <p key={note} className="dim">
          {note}
        </p>
      ))}
      {narrowed.length > 0 && <PolicyText key={show} lines={narrowed} at={of('at')} />}
      {others.length > 0 && <Others clauses={others} isAll={lines.length === 0} />}
      {narrowed.length === 0 && others.length === 0 && <Empty title="No such clause" />}
    </>
  )
}

/** The maximum number of clauses of the list. Nobody reads more. */
const MAX_OTHERS = 500

/** Shows clauses without a line in the text: those of apps, or all clauses for people who do not see the text. */
function Others({ clauses, isAll }: { clauses: readonly ClauseRow[]; isAll: boolean }): ReactElement {
  return (
    <section className="stack other-clauses" aria-label={isAll ? 'The clauses' : 'Clauses of apps'}>
      {!isAll && <h2>In apps</h2>}
      <ul className="clause-notes">
        {clauses.slice(0, MAX_OTHERS).map((clause) => (
          <ClauseNote key={clause.path} clause={clause} />
        ))}
      </ul>
      {clauses.length > MAX_OTHERS && <p className="dim">and {count(clauses.length - MAX_OTHERS, 'other clause')}</p>}
    </section>
  )
}
