"""Shows what is remembered in a browser: the pages at `/`, and the page of the API's text at `/docs`."""
