"""The status page: it shows the throttle, and sets or ends an override.

``routes.add_status(app, ...)`` adds its routes. Views are functions of a snapshot and a moment.
HTML is made from views alone. Only ``routes`` and ``responses`` handle requests.
"""
