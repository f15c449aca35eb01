import type { Provider } from './provider.ts'

const SERVER = '/oauth2/default'

/** Okta, with its custom authorization server "default". */
export const okta: Provider = {
  name: 'Okta',
  path: SERVER,
  namesIssuer: false,
  lifeSeconds: 3600,
  people: {
    ann: { id: '00u1anna2bcDEFghi5d7', name: 'Ann Archer', email: 'ann@acme.com', groups: ['Tool Admins'] },
    bob: { id: '00u2bobb3cdEFGhij5d7', name: 'Bob Baker', email: 'bob@acme.com', groups: ['Tool Users'] },
    eve: { id: '00u3evee4deFGHijk5d7', name: 'Eve Else', email: 'eve@acme.com', groups: ['Everyone'] },
  },
  endpoints: {
    authorize: `${SERVER}/v1/authorize`,
    token: `${SERVER}/v1/token`,
    keys: `${SERVER}/v1/keys`,
    userinfo: `${SERVER}/v1/userinfo`,
  },
  documents(base) {
    const of = (path: string) => ({
      issuer: base + path,
      authorization_endpoint: `${base}${SERVER}/v1/authorize`,
      token_endpoint: `${base}${SERVER}/v1/token`,
      userinfo_endpoint: `${base}${SERVER}/v1/userinfo`,
      jwks_uri: `${base}${SERVER}/v1/keys`,
      end_session_endpoint: `${base}${SERVER}/v1/logout`,
      introspection_endpoint: `${base}${SERVER}/v1/introspect`,
      response_types_supported: ['code', 'id_token', 'code id_token', 'code token'],
      scopes_supported: ['openid', 'profile', 'email', 'address', 'phone', 'offline_access', 'device_sso'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    })
    return {
      [`${SERVER}/.well-known/openid-configuration`]: of(SERVER),
      [`${SERVER}/.well-known/oauth-authorization-server`]: of(SERVER),
      // The org authorization server is the host itself.
      '/.well-known/openid-configuration': of(''),
    }
  },
  // With a code, the ID token is thin: the claims of scopes are at the userinfo endpoint.
  idToken: ({ id }) => ({
    ver: 1,
    sub: id,
    jti: `ID.${crypto.randomUUID()}`,
    amr: ['pwd'],
    idp: '00oixa26ycdNcX0VT0h7',
    auth_time: Math.floor(Date.now() / 1000),
    at_hash: 'c0RSVLxJ5FZ9a9Fq7A0v9A',
  }),
  // "sub" is the name of the login here, and the id of the person in the ID token.
  accessToken: ({ id, email, groups }, { client, audience }) => ({
    ver: 1,
    jti: `AT.${crypto.randomUUID()}`,
    aud: audience,
    cid: client,
    uid: id,
    scp: ['openid', 'tools'],
    auth_time: Math.floor(Date.now() / 1000),
    sub: email,
    groups,
  }),
  userinfo: ({ id, name, email, groups }) => ({
    sub: id,
    name,
    email,
    email_verified: true,
    preferred_username: email,
    groups,
  }),
}
