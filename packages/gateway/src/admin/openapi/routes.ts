import { readFile } from 'node:fs/promises'
import { OPENAPI } from '../../files.ts'
import type { Room } from '../../heart/room.ts'
import { parseQuery, queryOf } from '../http/request.ts'

/** `GET /api/openapi.json`, for everybody: it contains nothing about this gateway. */
export const room: Room = {
  name: 'openapi',
  open: () => ({ routes: [{ method: 'GET', path: '/api/openapi.json', by: 'anyone', answer: openapiAnswer }] }),
}

async function openapiAnswer(request: Request): Promise<Response> {
  parseQuery(queryOf(request), {})
  return new Response(await readFile(OPENAPI, 'utf8'), { headers: { 'content-type': 'application/json' } })
}
