/** What a server answered; `body` is JSON, or the text of anything else. */
export interface Answered<Body> {
  readonly status: number
  readonly body: Body
}

/** Sends a request as a client of the server would: a POST with this JSON, or a GET without. */
export async function ask<Body = unknown>(
  url: string,
  { token, json, headers = {} }: { token?: string; json?: object; headers?: Record<string, string> },
): Promise<Answered<Body>> {
  const response = await fetch(url, {
    method: json ? 'POST' : 'GET',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }), ...headers },
    body: json ? JSON.stringify(json) : null,
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true
  return { status: response.status, body: (isJson ? JSON.parse(text) : text) as Body }
}
