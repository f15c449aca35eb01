import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useMemo, useState } from 'react'
import { type ApiError, deleteJson } from '../api.ts'
import { count, formatExact, formatIn } from '../format.ts'
import { useApi, useNow } from '../hooks.ts'
import { findKeys, type KeyRow, wordOfUse, wordsOfUser } from '../keys.ts'
import { announce } from './announcer.tsx'
import type { Column } from './cells.tsx'
import { Exact } from './exact.tsx'
import { Field, Problem } from './form.tsx'
import { NewKeyButton } from './new-key.tsx'
import { Pending } from './panels.tsx'
import { RowTable } from './row-table.tsx'
import { Ago } from './when.tsx'
import type { KeysBody } from '../wire.ts'

const REFRESH_MS = 5000

/** Shows the file's keys and the created ones. A person can create keys, and revoke created ones. */
export function AllKeys(): ReactElement {
  const answer = useApi<KeysBody>({ key: ['keys'], path: '/api/keys', everyMs: REFRESH_MS })
  const { data } = answer
  const [words, setWords] = useState('')
  const found = useMemo(() => findKeys(data?.keys ?? [], words), [data, words])
  return (
    <>
      <p className="view-note">
        API keys from the configuration file, and keys made here. A key is shown once, when it is made.
      </p>
      <Pending answer={answer} what="the keys" />
      {data && (
        <>
          <div className="toolbar">
            <NewKeyButton keys={data.keys} />
            <Field label="Search" isGrowing>
              {(id) => (
                <input
                  id={id}
                  type="search"
                  maxLength={100}
                  placeholder="key, user, tenant or role"
                  value={words}
                  onChange={({ target }) => setWords(target.value)}
                />
              )}
            </Field>
            <p role="status">{words === '' ? '' : count(found.length, 'key')}</p>
          </div>
          <KeyTable key={words} keys={found} />
        </>
      )}
    </>
  )
}

export function KeyTable({ keys }: { keys: readonly KeyRow[] }): ReactElement {
  const nowMs = useNow(30_000)
  return (
    <RowTable
      label="The keys"
      caption="Keys, those of the file first"
      rows={keys}
      keyOf={({ from, id }) => `${from} ${id}`}
      columns={columnsAt(nowMs)}
      actions={{ name: 'Revoke', cell: ({ from, id }) => from === 'made' && <Revoke id={id} /> }}
      isOff={({ isExpired, isOrphan }) => Boolean(isExpired || isOrphan)}
    />
  )
}

function columnsAt(nowMs: number): readonly Column<KeyRow>[] {
  return [
    { name: 'Key', cell: ({ id }) => <Exact text={id} className="id" /> },
    {
      name: 'Whose',
      cell: (row) => (
        <>
          <Exact text={wordsOfUser(row)} className="strong" />
          <span className="dim sub">
            {[wordOfUse(row), ...(row.roles?.length ? [row.roles.join(', ')] : [])].join(' · ')}
          </span>
        </>
      ),
    },
    { name: 'Opens', cell: opens },
    { name: 'Expires', width: '11%', cell: (row) => <Expiry row={row} nowMs={nowMs} /> },
    {
      name: 'Last used',
      width: '11%',
      cell: ({ lastUsedAt: ms }) => (ms === undefined ? <span className="dim">never</span> : <Ago ms={ms} />),
    },
    { name: 'Made by', width: '11%', cell: (row) => <Maker row={row} /> },
  ]
}

function Maker({ row: { from, createdBy = 'unknown', createdAt } }: { row: KeyRow }): ReactElement {
  if (from === 'file') return <span className="dim">the file</span>
  return (
    <>
      <Exact text={createdBy} />
      {createdAt !== undefined && (
        <span className="dim sub">
          <Ago ms={createdAt} />
        </span>
      )}
    </>
  )
}

function opens({ for: use, apps, isOrphan }: KeyRow): string {
  if (isOrphan) return 'nothing: its user is not in the file as it was'
  if (use !== 'mcp') return use === 'console' ? 'the console' : 'run tokens'
  if (!apps) return 'all apps'
  return apps.length === 0 ? 'no app' : apps.join(', ')
}

function Expiry({ row: { expiresAt, isExpired }, nowMs }: { row: KeyRow; nowMs: number }): ReactElement {
  if (expiresAt === undefined) return <span className="dim">never</span>
  return (
    <time dateTime={new Date(expiresAt).toISOString()} title={formatExact(expiresAt)}>
      {isExpired ? <span className="problem">expired</span> : formatIn(expiresAt, nowMs)}
    </time>
  )
}

/** Asks for a confirmation: everything that was opened with the key ends at once. */
function Revoke({ id }: { id: string }): ReactElement {
  const client = useQueryClient()
  const [isAsked, setAsked] = useState(false)
  const revoke = useMutation<KeyRow, ApiError>({
    mutationFn: () => deleteJson(`/api/keys/${encodeURIComponent(id)}`),
    onSuccess: () => announce(`Revoked: ${id}`),
    onSettled: () => client.invalidateQueries({ queryKey: ['keys'] }),
  })
  if (!isAsked)
    return (
      <button type="button" onClick={() => setAsked(true)}>
        Revoke<span className="unseen"> {id}</span>
      </button>
    )
  return (
    <div className="row revoke-key">
      <p>Its sessions and streams end.</p>
      <button type="button" autoFocus onClick={() => setAsked(false)}>
        Keep<span className="unseen"> {id}</span>
      </button>
      <button type="button" className="reject" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
        Revoke now<span className="unseen">: {id}</span>
      </button>
      <Problem text={revoke.error?.message} />
    </div>
  )
}
