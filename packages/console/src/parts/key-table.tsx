import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactElement, useId, useMemo, useRef, useState } from 'react'
import { type ApiError, deleteJson } from '../api.ts'
import { count, formatIn, formatTime } from '../format.ts'
import { useApi, useNow } from '../hooks.ts'
import { findKeys, type KeyRow, wordOfUse, wordsOfUser } from '../keys.ts'
import { announce } from './announcer.tsx'
import { Exact } from './exact.tsx'
import { NewKeyDialog } from './new-key.tsx'
import { Failed, Loading } from './panels.tsx'
import { RowTable } from './row-table.tsx'
import { Ago } from './when.tsx'
import type { KeysBody } from '../wire.ts'

const REFRESH_MS = 5000

/** The keys of the file and the made ones. Makes and revokes the latter. */
export function AllKeys(): ReactElement {
  const { data, error, refetch } = useApi<KeysBody>({ key: ['keys'], path: '/api/keys', everyMs: REFRESH_MS })
  const dialog = useRef<HTMLDialogElement>(null)
  const search = useId()
  const [words, setWords] = useState('')
  const found = useMemo(() => findKeys(data?.keys ?? [], words), [data, words])
  return (
    <>
      <p className="view-note">
        API keys from the configuration file, and keys made here. A key is shown once, when it is made.
      </p>
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the keys" />}
      {data && (
        <>
          <div className="toolbar">
            <button type="button" className="main" onClick={() => dialog.current?.showModal()}>
              Make a key…
            </button>
            <div className="field grow">
              <label htmlFor={search}>Search</label>
              <input
                id={search}
                type="search"
                maxLength={100}
                placeholder="key, user, tenant or role"
                value={words}
                onChange={({ target }) => setWords(target.value)}
              />
            </div>
            <p role="status">{words === '' ? '' : count(found.length, 'key')}</p>
          </div>
          <KeyTable key={words} keys={found} />
          <NewKeyDialog dialog={dialog} keys={data.keys} />
        </>
      )}
    </>
  )
}

const COLUMNS = ['Key', 'Whose', 'Opens', 'Expires', 'Last used', 'Made by'] as const

export function KeyTable({ keys }: { keys: readonly KeyRow[] }): ReactElement {
  const nowMs = useNow(30_000)
  return (
    <RowTable label="The keys" caption="Keys, those of the file first" columns={COLUMNS} actions="Revoke">
      {keys.map((row) => (
        <Row key={`${row.from} ${row.id}`} row={row} nowMs={nowMs} />
      ))}
    </RowTable>
  )
}

function Row({ row, nowMs }: { row: KeyRow; nowMs: number }): ReactElement {
  const { id, roles = [], lastUsedAt, createdAt, createdBy, from, isExpired, isOrphan } = row
  return (
    <tr className={isExpired || isOrphan ? 'off' : undefined}>
      <th scope="row">
        <Exact text={id} className="id" />
      </th>
      <td data-label="Whose">
        <Exact text={wordsOfUser(row)} className="strong" />
        <span className="dim sub">
          {wordOfUse(row)}
          {roles.length > 0 && ` · ${roles.join(', ')}`}
        </span>
      </td>
      <td data-label="Opens">{opens(row)}</td>
      <td data-label="Expires">
        <Expiry row={row} nowMs={nowMs} />
      </td>
      <td data-label="Last used">
        {lastUsedAt === undefined ? <span className="dim">never</span> : <Ago ms={lastUsedAt} />}
      </td>
      <td data-label="Made by">
        {from === 'file' ? (
          <span className="dim">the file</span>
        ) : (
          <>
            <Exact text={createdBy ?? 'unknown'} />
            {createdAt !== undefined && (
              <span className="dim sub">
                <Ago ms={createdAt} />
              </span>
            )}
          </>
        )}
      </td>
      <td className="act">{from === 'made' && <Revoke id={id} />}</td>
    </tr>
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
    <time dateTime={new Date(expiresAt).toISOString()} title={formatTime(expiresAt, nowMs)}>
      {isExpired ? <span className="problem">expired</span> : formatIn(expiresAt, nowMs)}
    </time>
  )
}

/** Asks once more: what was opened with the key ends at once. */
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
    <div className="revoke-key">
      <p>Its sessions and streams end.</p>
      <button type="button" autoFocus onClick={() => setAsked(false)}>
        Keep<span className="unseen"> {id}</span>
      </button>
      <button type="button" className="reject" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
        Revoke now<span className="unseen">: {id}</span>
      </button>
      {revoke.error && (
        <p className="problem" role="alert">
          {revoke.error.message}
        </p>
      )}
    </div>
  )
}
