// What a browser keeps for this page: the words of one server are not read by the page of another on the same host.

const HERE = new URL(".", document.baseURI).pathname;

// `store` names it: sessionStorage is this tab's, localStorage this browser's. Where a browser forbids both, nothing is
// kept, and the page works until it is left.
export function kept(store, what) {
  const name = `gemma-jax ${what} ${HERE}`;
  let here = null;
  const tried = (act) => {
    try {
      return act(window[store]);
    } catch {
      return undefined;
    }
  };
  return {
    get: () => tried((found) => found.getItem(name)) ?? here,
    set: (value) => {
      here = value;
      return tried((found) => { found.setItem(name, value); return true; }) ?? false;
    },
    forget: () => {
      here = null;
      tried((found) => found.removeItem(name));
    },
  };
}
